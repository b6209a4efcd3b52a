#!/usr/bin/env python3
"""Says which modules of a crate import each other in a ring: `ci/rings.py [-v] CRATE...`.

Modules are compared where they stand side by side: the children of one module (files, folders) form a ring where each
reaches the next by a path that begins with `crate`, `super`, `self` or a child's name, in whatever stands below it. Names
that a module re-exports belong to where they come from. A room, a folder whose `mod.rs` only lists modules, is
imported as a whole, one way; in the crates of `LOOSE` its modules stand beside what stands around it. Inline test modules do not
count, and neither do comments: a path in a link is no import.

Where the rooms of a crate have floors (`FLOORS`), one imports only from the floors below it.

A ring is printed as the shortest one through its first module, each arrow with a place that makes it; `-v` prints every
arrow among the modules of it. The status is 1 where there is one.
"""

import pathlib
import re
import sys
from collections import deque

LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\\n]|\\[^\n]{1,9}?)'""", re.S)
TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:pub(?:\([^)]*\))?\s+)?(?:mod|impl|fn|use)\b[^{;]*([{;])")
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+((?:[\w:*\s,]|\{|\})+);")
DECLARED = re.compile(r"\bmod\s+(\w+)\s*;")
PATH = re.compile(r"(?<![\w:.$])((?:crate|super|self|[a-z]\w*)(?:\s*::\s*\w+)+)")

# The rooms of a crate, from the ground up; those of one floor do not know each other.
FLOORS = {
    "edge": [
        "beat inspector metrics settings", "net quarantine trust", "message scanner upstream", "recipients", "porch",
        "clamd mailbox milter scored smtp web", "worker",
    ],
    "scan": ["layout", "syntax", "source normal signed links", "yara", "table", "compile run"],
    "sluice": [
        "cli output", "process", "database learned", "config",
        "dnsbl intercept logging lookups quarantine resolver update", "store", "mails serve", "admin command on_access",
    ],
}

# Crates whose rooms still import each other both ways.
LOOSE = {"unpack"}


class Module:
    """A file, and what it declares, re-exports and reaches."""

    def __init__(self, name, parent, file):
        self.name, self.parent, self.file = name, parent, file
        self.children, self.exports, self.imports, self.paths = {}, {}, {}, []
        text = plain(file.read_text())
        base = file.parent if file.name in ("lib.rs", "main.rs", "mod.rs") else file.with_suffix("")
        for child in DECLARED.findall(text):
            found = [f for f in (base / f"{child}.rs", base / child / "mod.rs") if f.exists()]
            if found:
                self.children[child] = Module(child, self, found[0])
        for use in USE.finditer(text):
            for path, alias in leaves(use[2]):
                self.paths.append((path, line(text, use.start(2))))
                self.imports[alias] = path
                if use[1]:
                    self.exports[alias] = path
        text = USE.sub(lambda use: "\n" * use[0].count("\n"), text)
        self.is_room = bool(self.children) and not re.sub(r"(pub(\([^)]*\))?\s+)?mod\s+\w+\s*;", "", text).strip()
        for path in PATH.finditer(text):
            self.paths.append((re.split(r"\s*::\s*", path[1]), line(text, path.start())))

    def all(self):
        yield self
        for child in self.children.values():
            yield from child.all()

    def line_of_descent(self):
        return (self.parent.line_of_descent() if self.parent else []) + [self]

    def standing(self, is_loose):
        """The line of descent; without rooms, where the crate is loose."""
        line = self.line_of_descent()
        if not is_loose:
            return line
        return [m for m in line if not m.is_room or m.parent is None or m is line[-1]]

    def called(self):
        """Its name, with those of the rooms that it stands in."""
        return f"{self.parent.called()}::{self.name}" if self.parent and self.parent.parent and self.parent.is_room else self.name


def plain(text):
    """The text without comments, literals and tests, each line where it was."""
    def blank(match):
        return '""' * (not match[0].startswith("/")) + "\n" * match[0].count("\n")
    text = LITERAL.sub(blank, text)
    while test := TEST.search(text):
        end = test.end() if test[1] == ";" else closing(text, test.end())
        text = text[:test.start()] + "\n" * text.count("\n", test.start(), end) + text[end:]
    return text


def closing(text, at):
    """Behind the brace that closes the one in front of `at`."""
    depth = 1
    while depth and at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def line(text, at):
    return text.count("\n", 0, at) + 1


def leaves(tree, prefix=()):
    """Each path of a `use`, with the name that it gets."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, alias = re.sub(r"\s+", " ", tree).partition(" as ")
        path = [*prefix, *(part.strip() for part in path.split("::"))]
        path = path[:-1] if path[-1] == "self" and len(path) > 1 else path
        yield path, alias or path[-1]
        return
    head, _, rest = tree.partition("{")
    prefix = (*prefix, *(part.strip() for part in head.split("::") if part.strip()))
    depth, item = 0, ""
    for char in rest[:rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            if item.strip():
                yield from leaves(item, prefix)
            item = ""
        else:
            item += char


def target(module, path, hops=8):
    """The module that a path written in `module` reaches, or nothing if it leaves the crate."""
    if path[0] == "crate":
        at = module.line_of_descent()[0]
    elif path[0] == "self":
        at = module
    elif path[0] == "super":
        at = module.parent
    elif path[0] in module.children:
        at, path = module, ("self", *path)
    elif hops and path[0] in module.imports and list(module.imports[path[0]]) != list(path):
        return target(module, [*module.imports[path[0]], *path[1:]], hops - 1)
    else:
        return None
    for name in path[1:]:
        if at is None:
            return None
        if name == "super":
            at = at.parent
        elif name in at.children:
            at = at.children[name]
            # A function that bears the name of a module is the parent's export of the module's.
        elif hops and name in at.exports:
            return target(at, at.exports[name], hops - 1) or at
        else:
            break
    return at


def arrows(root, is_loose):
    """For each module with children: which of them reaches which, and where."""
    found = {}
    for module in root.all():
        for path, number in module.paths:
            reached = target(module, path)
            if reached is None:
                continue
            here, there = module.standing(is_loose), reached.standing(is_loose)
            for depth in range(1, min(len(here), len(there))):
                if here[depth] is not there[depth]:
                    place = f"{module.file}:{number}"
                    found.setdefault(here[depth - 1], {}).setdefault(here[depth].called(), {}).setdefault(
                        there[depth].called(), []).append((place, "::".join(path)))
                    break
    return found


def shortest_ring(graph, start):
    """The shortest way from `start` back to it, or nothing."""
    before, queue = {}, deque([start])
    while queue:
        at = queue.popleft()
        for to in sorted(graph.get(at, {})):
            if to == start:
                ring = [at]
                while ring[-1] != start:
                    ring.append(before[ring[-1]])
                return ring[::-1] + [start]
            if to not in before:
                before[to] = at
                queue.append(to)
    return None


def knots(graph):
    """Sets of modules each of which reaches all others of its set."""
    def reached(start):
        seen, queue = set(), [start]
        while queue:
            for to in graph.get(queue.pop(), {}):
                if to not in seen:
                    seen.add(to)
                    queue.append(to)
        return seen
    reach = {name: reached(name) for name in graph}
    left = {name for name in graph if name in reach[name]}
    while left:
        name = min(left)
        knot = {other for other in left if other in reach[name] and name in reach[other]}
        left -= knot
        yield sorted(knot)


def upward(crate, root):
    """Imports of a room from one that is not below it."""
    floors = {room: floor for floor, rooms in enumerate(FLOORS.get(crate, [])) for room in rooms.split()}
    for module in root.all():
        for path, number in module.paths:
            reached = target(module, path)
            here, there = module.line_of_descent()[1:2], reached.line_of_descent()[1:2] if reached else []
            if not here or not there or here == there or here[0].name not in floors or there[0].name not in floors:
                continue
            if floors[there[0].name] >= floors[here[0].name]:
                yield f"{crate}: {here[0].name} imports {there[0].name}, which is not below it: {module.file}:{number} {'::'.join(path)}"


def main(arguments):
    verbose = "-v" in arguments
    status = 0
    for crate in (a for a in arguments if a != "-v"):
        for source in ("lib.rs", "main.rs"):
            file = pathlib.Path("crates") / crate / "src" / source
            if not file.exists():
                continue
            root = Module("crate", None, file)
            for wrong in upward(crate, root):
                status = 1
                print(wrong)
            for parent, graph in arrows(root, crate in LOOSE).items():
                name = "::".join([crate, *(m.name for m in parent.line_of_descent()[1:])])
                for knot in knots(graph):
                    status = 1
                    ring = shortest_ring(graph, knot[0])
                    print(f"{name}: {len(knot)} modules in a ring: {' '.join(knot)}")
                    pairs = [(a, b) for a in knot for b in sorted(graph[a]) if b in knot] if verbose else zip(ring, ring[1:])
                    for a, b in pairs:
                        places = graph[a][b]
                        for place, path in places if verbose else places[:1]:
                            print(f"    {a} -> {b}: {place} {path}")
    return status


sys.exit(main(sys.argv[1:]))
