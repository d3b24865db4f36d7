"""Reduction of the node's files to what a small board can compile: the chosen parts, without comments.

A part is the text after a line `# part: NAME`, or `# part: NAME needs OTHER...`, up to the next such line.
"""

import ast
import re
from collections.abc import Iterable

_MARK = re.compile(r"^# part: (\w+)(?: needs (.+))?$", re.MULTILINE)
_ALWAYS = "core"
_PIECE_BYTES = 640


def joined(sources: Iterable[str]) -> str:
    """Join files into one: of each, the text from its first mark."""
    return "".join(source[source.index("\n# part: ") :] for source in sources)


def parts(source: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Map each name to its text and the parts it needs, in order; skip the text before the first mark."""
    marks = list(_MARK.finditer(source))
    ends = [mark.start() for mark in marks[1:]] + [len(source)]
    return {
        mark[1]: (source[mark.end() : end], tuple((mark[2] or "").split()))
        for mark, end in zip(marks, ends, strict=True)
    }


def select(source: str, names: list[str]) -> list[str]:
    """Return the names of `core`, of the parts `names` and of the parts they need, in the file's order.

    Raises ValueError for an unknown part; its text names the known ones.
    """
    known = parts(source)
    wanted = {_ALWAYS}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in known:
            raise ValueError(f"there is no part {name!r}: use {', '.join(known)}")
        wanted.add(name)
        waiting += known[name][1]
    return [name for name in known if name in wanted]


def statements(source: str, names: list[str]) -> list[str]:
    """Return the parts `names` as pieces that are small enough to compile one by one."""
    return pieces(_chosen(source, names))


def shrink(source: str, names: list[str]) -> str:
    """Return the parts `names` as one small file."""
    return "\n".join(map(_plain, ast.parse(_chosen(source, names)).body)) + "\n"


def _chosen(source: str, names: list[str]) -> str:
    known = parts(source)
    return "".join(known[name][0] for name in select(source, names))


def pieces(source: str) -> list[str]:
    """Split a module into pieces to run one by one: one statement each, or one method of a large class."""
    return [piece for statement in ast.parse(source).body for piece in _split(statement)]


def _split(statement: ast.stmt) -> list[str]:
    whole = _plain(statement)
    if not isinstance(statement, ast.ClassDef) or len(whole) <= _PIECE_BYTES:
        return [whole]
    later = [node for node in statement.body[1:] if isinstance(node, ast.FunctionDef)]
    statement.body = [node for node in statement.body if node not in later]
    return [_plain(statement), *(_method(statement.name, node) for node in later)]


def _method(owner: str, node: ast.FunctionDef) -> str:
    """Return a method as code that adds it to its class after the class was defined."""
    name, node.name = node.name, "_"
    return f"{_plain(node)}\n{owner}.{name} = _"


def _plain(statement: ast.stmt) -> str:
    """Return the code without comments and docstrings, indented by single spaces. No name changes."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    lines = ast.unparse(ast.fix_missing_locations(statement)).splitlines()
    return "\n".join(_outdent(line) for line in lines if line.strip())


def _outdent(line: str) -> str:
    bare = line.lstrip(" ")
    return " " * ((len(line) - len(bare)) // 4) + bare
