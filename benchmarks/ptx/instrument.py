#!/usr/bin/env python3
"""Puts a patch before each access of global memory in PTX, as it could be done where Triton and NVRTC compile:
instrument.py inline|call KERNEL.ptx PATCH.ptx OUT.ptx [EVERY]

Of PATCH.ptx (patch.cu) the function pasta_at is taken. `inline` copies it to each place, `call` has it called. What it
is given is a parameter more of each kernel, the last. With EVERY, one group in so many is looked at. A line for each
access: its place, the instruction, its bytes.

What it does not see is said: copies and reductions in bulk, and what is in functions that are not kernels."""
import dataclasses
import re
import sys

READS, WRITES = 1, 2
PATCH = "pasta_at"
# Without comments, a statement is what lies between semicolons, braces of blocks and labels.
ACCESS = re.compile(
    r"(?P<guard>@!?[%\w$]+\s+)?\b(?P<op>(?:ld|st|atom|red|multimem|cp\.async|cp\.reduce\.async)\b(?:\.[\w:]+)*)"
    r"(?P<operands>\s[^;]*);")
ELSEWHERE = ("param", "shared", "local", "const")
BITS = re.compile(r"(?:b|u|s|f|bf)(8|16|32|64|128)(x2)?")


@dataclasses.dataclass
class Access:
    begin: int  # in the text
    guard: str  # "@%p1", "@!%p1", ""
    op: str
    address: str  # of PTX: a register or a variable, and what is added
    width: int
    flags: int
    generic: bool
    size: str = ""  # of a copy: a register or number that is 0 where nothing is read


class Unseen(Exception):
    pass


class Repeats:
    """Which loads are as one before them, with nothing in between that could change what they read: of all of these
    the assembler makes one. (Triton loads what elements of a lane have in common once for each of them.)"""

    STRONG = {"volatile", "relaxed", "acquire", "mmio"}
    ENDS = re.compile(r"[\w$]+:(?!:)|[{}]|\b(?:bra|brx|call|ret|exit|bar|barrier|membar|fence|griddepcontrol)\b")
    ASSIGNS = re.compile(r"(?:^|[;:])\s*(?:@!?[%\w$]+\s+)?[a-z][\w.:]*\s+(\{[^}]*\}|%[\w$]+)")

    def __init__(self):
        self.seen = []

    def _pass(self, text):
        changed = set(re.findall(r"%[\w$]+", " ".join(self.ASSIGNS.findall(text))))
        self.seen = [key for key in self.seen if not changed & set(re.findall(r"%[\w$]+", " ".join(key)))]

    def pass_over(self, text):
        """What lies between two accesses."""
        if self.ENDS.search(text):
            self.seen = []
        self._pass(text)

    def has(self, statement, access):
        """Of each access of any memory, one after the other; None is one of other memory."""
        parts = statement.group("op").split(".")
        if parts[0] != "ld" or self.STRONG & set(parts):
            self.seen = []
            return False
        key = access and (access.op, access.guard, access.address.replace(" ", ""))
        had = key in self.seen
        if key and not had:
            self.seen.append(key)
        self._pass(statement.group())
        return had


def without_comments(text):
    """As long as it was."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group())
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"", blank, text, flags=re.S)


def width_of(parts):
    bits = BITS.fullmatch(parts[-1])
    if bits is None:
        raise Unseen(".".join(parts))
    vector = [int(part[1:]) for part in parts if part in ("v2", "v4", "v8")]
    return int(bits.group(1)) // 8 * (2 if bits.group(2) else 1) * (vector[0] if vector else 1)


def access_of(found):
    """None of other memory."""
    parts, operands = found.group("op").split("."), found.group("operands")
    addresses = re.findall(r"\[([^\]]*)\]", operands)
    guard = (found.group("guard") or "").strip()
    if parts[0] == "multimem" or "bulk" in parts:
        raise Unseen(found.group("op"))
    if parts[0] == "cp":
        if parts[2] not in ("ca", "cg"):
            return None  # only waits
        rest = [operand.strip() for operand in operands.rsplit("]", 1)[1].split(",")[1:]]
        size = rest[1] if len(rest) > 1 and "cache_hint" not in found.group("op") else ""
        return Access(found.start(), guard, found.group("op"), addresses[1], int(rest[0], 0), READS, False, size)
    space = [part.split("::")[0] for part in parts]
    if any(other in space for other in ELSEWHERE):
        return None
    flags = {"ld": READS, "st": WRITES}.get(parts[0], READS | WRITES)
    return Access(found.start(), guard, found.group("op"), addresses[0], width_of(parts), flags, "global" not in space)


def body_of(patch):
    """What lies between the braces of the function, and its text without that."""
    plain = without_comments(patch)
    head = re.search(rf"\.visible\s+\.func\s+{PATCH}\s*\([^)]*\)\s*{{", plain)
    depth, end = 1, head.end()
    while depth > 0:
        depth += {"{": 1, "}": -1}.get(plain[end], 0)
        end += 1
    return patch[head.end():end - 1], patch[:head.start()] + patch[end:]


class Inlined:
    """The patch, copied to each place. Its registers have names of their own, its labels the place's."""

    def __init__(self, patch):
        self.body, self.beside = body_of(patch)
        self.body = re.sub(r"%(p|rs|r|rd|f|fd|rq)(\d+|<)", r"%pasta_\1\2", self.body)

    def at(self, place, arguments):
        def argument(found):
            kind = "b16" if found.group(1).endswith("8") else found.group(1)  # as no register is of 8 bits
            return f"mov.{kind} {found.group(2)}, {arguments[int(found.group(3))]};"

        text = re.sub(rf"ld\.param\.(\w+)\s+(%\w+), \[{PATCH}_param_(\d)\];", argument, self.body)
        text = re.sub(r"\$L_", f"$L_pasta{place}_", text)
        return re.sub(r"\bret;", f"bra $L_pasta{place}_end;", text)


class Called:
    def __init__(self, patch):
        self.beside = patch

    def at(self, place, arguments):
        types = ("b64", "b64", "b64", "b32", "b32")
        given = "".join(f".param .{kind} pasta_{i};\nst.param.{kind} [pasta_{i}], {value};\n"
                        for i, (kind, value) in enumerate(zip(types, arguments)))
        return f"{{\n{given}call {PATCH}, ({', '.join(f'pasta_{i}' for i in range(5))});\n}}\n"


def before(access, place, parameter, form, sampled):
    base, _, more = access.address.partition("+")
    base, more = base.strip(), more.strip() or "0"
    lines = [".reg .b64 %pasta_given, %pasta_address;", ".reg .pred %pasta_off;"]
    end = f"$L_pasta{place}_end"
    if sampled:
        lines.append(f"@!%pasta_sampled bra {end};")
    if access.guard:
        negated = access.guard.startswith("@!")
        lines.append(f"@{'' if negated else '!'}{access.guard.lstrip('@!')} bra {end};")
    lines.append(f"add.s64 %pasta_address, {base}, {more};" if base.startswith("%") else
                 f"mov.u64 %pasta_address, {base}+{more};")
    if access.size:
        lines += [f"setp.eq.u32 %pasta_off, {access.size}, 0;", f"@%pasta_off bra {end};"]
    if access.generic:
        lines += ["isspacep.global %pasta_off, %pasta_address;", f"@!%pasta_off bra {end};"]
    lines.append(f"ld.param.b64 %pasta_given, [{parameter}];")
    arguments = ("%pasta_given", f"{place * 16}", "%pasta_address", f"{access.width}", f"{access.flags}")
    return "{\n" + "\n".join(lines) + "\n" + form.at(place, arguments) + f"\n{end}:\n}}\n"


def sample(every):
    """At the begin of a kernel: whether its group, of all in a row, is one of those that are looked at."""
    number = "mov.u32 %pasta_group, %ctaid.z;\n" + "".join(
        f"mov.u32 %pasta_step, {step};\nmov.u32 %pasta_more, {more};\n"
        "mad.lo.u32 %pasta_group, %pasta_group, %pasta_step, %pasta_more;\n"
        for step, more in (("%nctaid.y", "%ctaid.y"), ("%nctaid.x", "%ctaid.x")))
    return ("\n.reg .b32 %pasta_group, %pasta_step, %pasta_more;\n.reg .pred %pasta_sampled;\n" + number +
            f"rem.u32 %pasta_group, %pasta_group, {every};\nsetp.eq.u32 %pasta_sampled, %pasta_group, 0;\n")


def instrument(kernel, patch, form, every=1, has_parameter=False):
    """The PTX, the accesses in order of their places, and what was not seen. `every`: only one group in so many is
    looked at. `has_parameter`: what the patch is given is the last parameter that there is."""
    if "%pasta_" in kernel:
        raise ValueError("the PTX has a patch already")
    made = {"inline": Inlined, "call": Called}[form](patch)
    plain = without_comments(kernel)
    accesses, unseen, pieces, at = [], [], [], 0
    functions = re.compile(r"\.(?:entry|func)\b")
    for entry in re.finditer(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)", plain):
        parameters = entry.group(2).strip()
        parameter = re.findall(r"[\w$]+", parameters)[-1] if has_parameter else f"{entry.group(1)}_param_pasta"
        pieces.append(kernel[at:entry.end(2)].rstrip())
        if not has_parameter:
            pieces.append(f"{',' if parameters else ''}\n.param .u64 {parameter}\n")
        begin = plain.index("{", entry.end()) + 1
        pieces += [kernel[entry.end(2):begin], sample(every) if every > 1 else ""]
        at = begin
        following, repeats, passed = functions.search(plain, begin), Repeats(), begin
        for statement in ACCESS.finditer(plain, begin, following.start() if following else len(plain)):
            repeats.pass_over(plain[passed:statement.start()])
            passed = statement.end()
            try:
                access = access_of(statement)
            except Unseen as what:
                unseen.append(str(what))
                continue
            if repeats.has(statement, access) or access is None:
                continue
            accesses.append(access)
            pieces += [kernel[at:access.begin], before(access, len(accesses), parameter, made, every > 1)]
            at = access.begin
    unseen += re.findall(r"\.func\s+(?:\([^)]*\)\s*)?([\w$]+)[^;{]*{", plain)
    pieces.append(kernel[at:])
    text = "".join(pieces)
    beside = re.sub(r"^\.(version|target|address_size)[^\n]*\n", "", made.beside, flags=re.M)
    first = re.search(r"\.address_size\s+64", text).end()
    return text[:first] + "\n" + beside + text[first:], accesses, unseen


def main():
    form, kernel, patch, out = sys.argv[1:5]
    every = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    with open(kernel, encoding="utf-8") as file, open(patch, encoding="utf-8") as patch_file:
        text, accesses, unseen = instrument(file.read(), patch_file.read(), form, every)
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
    for place, access in enumerate(accesses, 1):
        print(place, access.op, access.width)
    for what in unseen:
        print("not seen:", what)


if __name__ == "__main__":
    main()
