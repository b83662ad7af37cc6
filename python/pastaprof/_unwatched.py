"""What there is when nobody watches."""


class annotate:
    __slots__ = ()

    def __init__(self, name):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __call__(self, function):
        return function


def mark(name):
    pass


def step():
    pass


def start():
    pass


def stop():
    pass


def tag(what, bytes=None, name=""):
    pass
