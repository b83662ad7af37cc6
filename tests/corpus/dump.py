"""Reads what `pastaprof dump` prints (the text form of docs/format.md)."""

import json
import re

from program import Run

EVENT_KINDS = frozenset(("api", "scope", "kernel", "copy", "fill", "sync", "alloc", "free", "fault",
                         "counter", "device", "gap"))
QUOTED = r'"(?:[^"\\]|\\.)*"'
FIELD = re.compile(rf'([a-z_]+)=({QUOTED}|\S+)')
EVENT = re.compile(rf'(\w+) (untimed|-?\d+ -?\d+) (\S+) ({QUOTED})(?: (\w+)(?![\w=]))?(.*)')
ROW = re.compile(rf'(\w+) (\w+)(?: in=(\w+))?(?: ({QUOTED}))?(.*)')


def unquote(text):
    # \\xNN, which JSON does not know, is a byte that is not UTF-8.
    return json.loads(re.sub(
        r"\\(x([0-9a-f]{2})|.)",
        lambda match: "\\u00" + match[2] if match[2] else match[0], text))


def fields(text):
    return {key: unquote(value) if value.startswith('"') else value
            for key, value in FIELD.findall(text)}


class Event:
    """One event; ids are resolved to what they stand for."""

    __slots__ = ("kind", "start", "end", "untimed", "lane", "name", "domain", "fields", "frames",
                 "device", "collective")

    def __init__(self, match, frames, lanes):
        self.kind, times, lane, name, self.domain, rest = match.groups()
        self.untimed = times == "untimed"
        self.start, self.end = (None, None) if self.untimed else map(int, times.split())
        self.name = unquote(name)
        self.fields = fields(rest) if rest else {}
        self.frames = frames.get(self.fields.get("scope"), ())
        self.lane = lanes.get(lane, {})
        self.device = self.lane.get("device")

    @property
    def path(self):
        """Names of the scopes around it, outermost first."""
        return [name for name, _ in self.frames]

    @property
    def operator(self):
        """The innermost operator around it, or None."""
        return next((name for name, domain in reversed(self.frames) if domain == "operator"), None)

    @property
    def correlation(self):
        return self.fields.get("correlation")

    @property
    def bytes(self):
        return int(self.fields.get("bytes", 0))

    @property
    def value(self):
        return float(self.fields["value"])

    @property
    def flags(self):
        return self.fields.get("flags", "").split(",")

    @property
    def linked(self):
        return "linked" in self.flags

    @property
    def unfinished(self):
        return "unfinished" in self.flags

    @property
    def annotation(self):
        return "annotation" in self.flags

    @property
    def duration(self):
        return self.end - self.start


def text(path, options=()):
    run = Run(["dump", path, *options])
    if run.code not in (0, 3):
        raise AssertionError(f"dump {path} ended with {run.code}: {run.err.strip()}")
    return run.text


def events(path, options=()):
    """All events of a trace, in order of end."""
    frames, lanes, devices, collectives = {}, {}, {}, {}
    result = []
    for line in text(path, options).splitlines():
        word = line[:line.find(" ")]
        if word in EVENT_KINDS and (match := EVENT.fullmatch(line)):
            result.append(Event(match, frames, lanes))
        elif word == "frame":
            _, handle, parent, name, rest = ROW.fullmatch(line).groups()
            frames[handle] = (*frames.get(parent, ()), (unquote(name), rest.strip()))
        elif word == "lane":
            _, handle, kind, rest = line.split(" ", 3) if line.count(" ") > 2 else (
                *line.split(" "), "")
            lanes[handle] = {"type": kind, **fields(rest)}
        elif word == "device":
            devices[line.split(" ")[1]] = fields(line)
        elif word == "collective":
            _, handle, _, name, rest = ROW.fullmatch(line).groups()
            collectives[handle] = {"name": unquote(name), **fields(rest)}
    for event in result:
        event.fields["device_row"] = devices.get(event.fields.get("device") or event.device, {})
        event.collective = collectives.get(event.fields.get("collective"))
    return result
