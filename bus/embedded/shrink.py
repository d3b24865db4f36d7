"""Makes of the node's one file what a small board can compile: the parts asked for, without comments.

A part is what follows a line `# part: NAME`, or `# part: NAME needs OTHER...`, up to the next such line.
"""

import ast
import re

_MARK = re.compile(r"^# part: (\w+)(?: needs (.+))?$", re.MULTILINE)
_ALWAYS = "core"
_PIECE_BYTES = 640


def parts(source: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name to text and needed parts, in the file's order; what stands before the first mark is left out."""
    marks = list(_MARK.finditer(source))
    ends = [mark.start() for mark in marks[1:]] + [len(source)]
    return {
        mark[1]: (source[mark.end() : end], tuple((mark[2] or "").split()))
        for mark, end in zip(marks, ends, strict=True)
    }


def select(source: str, names: list[str]) -> list[str]:
    """The names of `core`, the parts `names` and what they need, in the file's order.

    Raises ValueError that names an unknown part and the known ones.
    """
    known = parts(source)
    wanted = {_ALWAYS}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in known:
            raise ValueError(f"no part {name!r}: there are {', '.join(known)}")
        wanted.add(name)
        waiting += known[name][1]
    return [name for name in known if name in wanted]


def statements(source: str, names: list[str]) -> list[str]:
    """The parts `names` as pieces that are small enough to compile one by one."""
    known = parts(source)
    return pieces("".join(known[name][0] for name in select(source, names)))


def shrink(source: str, names: list[str]) -> str:
    """The parts `names` as one small file."""
    known = parts(source)
    module = ast.parse("".join(known[name][0] for name in select(source, names)))
    return "\n".join(_plain(statement) for statement in module.body) + "\n"


def pieces(source: str) -> list[str]:
    """Any module as pieces to be run one by one: a statement each, or a method of a large class."""
    return [piece for statement in ast.parse(source).body for piece in _split(statement)]


def _split(statement: ast.stmt) -> list[str]:
    whole = _plain(statement)
    if not isinstance(statement, ast.ClassDef) or len(whole) <= _PIECE_BYTES:
        return [whole]
    later = [node for node in statement.body[1:] if isinstance(node, ast.FunctionDef)]
    statement.body = [node for node in statement.body if node not in later]
    return [_plain(statement), *(_method(statement.name, node) for node in later)]


def _method(owner: str, node: ast.FunctionDef) -> str:
    """A method that is added to its class afterwards."""
    name, node.name = node.name, "_"
    return f"{_plain(node)}\n{owner}.{name} = _"


def _plain(statement: ast.stmt) -> str:
    """As short as it is without changing a name: no comments, no docstrings, indented by one space."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    lines = ast.unparse(ast.fix_missing_locations(statement)).splitlines()
    return "\n".join(_outdent(line) for line in lines if line.strip())


def _outdent(line: str) -> str:
    bare = line.lstrip(" ")
    return " " * ((len(line) - len(bare)) // 4) + bare
