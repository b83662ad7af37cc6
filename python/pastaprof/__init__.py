"""Tells `pastaprof run` what a Python program is doing. When nobody watches, this does nothing.

    import pastaprof as pasta

    with pasta.annotate("load"):          # a range of this thread
        ...

    @pasta.annotate("train")              # each call; also of generators and async functions
    def train(): ...

    pasta.mark("cache miss")              # a moment
    pasta.step()                          # between iterations: from one call to the next is one
    pasta.tag(weights, "weights")         # what a tensor, an array or a piece of memory is
    pasta.stop(); pasta.start()           # leave out what is in between, in the whole process
    pasta.watched()                       # whether anybody watches

All may be called from any thread, in processes that were forked or spawned, and at exit; none fails
because of watching. Generators and async functions have a range for each stretch in which they run:
what others do on the thread meanwhile is not theirs. So decorate them, and hold no `with` across an
`await` or a `yield`.
"""
import os as _os

_collector = None
if _os.environ.get("PASTA_RUN_FOLDER"):
    from pastaprof._collector import find as _find
    _collector = _find()

if _collector is not None:
    from pastaprof._watched import annotate, mark, start, step, stop, tag
else:
    from pastaprof._unwatched import annotate, mark, start, step, stop, tag

__all__ = ["annotate", "mark", "start", "step", "stop", "tag", "watched"]


def watched():
    """Whether a run of pastaprof watches this process."""
    return _collector is not None
