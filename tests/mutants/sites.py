"""What can be changed in a module: comparisons, signs, conditions and numbers. Pure."""

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Site(NamedTuple):
    """One change: `number` finds it in the same source, `words` say it, `apply` makes it in the tree."""

    number: int
    line: int
    words: str
    apply: Callable[[], None]


def sites(tree: ast.Module) -> list[Site]:
    """Return all changes of a module's tree, in the order of the source."""
    found = [
        (line, f"{where}: {words}".removeprefix(": "), apply)
        for where, node in _walk(tree)
        for line, words, apply in _changes(node)
    ]
    found.sort(key=lambda one: one[0])
    return [Site(number, line, words, apply) for number, (line, words, apply) in enumerate(found)]


def mutated(source: str, number: int) -> ast.Module:
    """Return the tree of a source with one change."""
    tree = ast.parse(source)
    sites(tree)[number].apply()
    return ast.fix_missing_locations(tree)


Change = tuple[int, str, Callable[[], None]]


def _walk(node: ast.AST, where: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes that run, and where they are: no annotations, and no decorators."""
    where = _place(node, where)
    yield where, node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_fixed(child):
                yield from _walk(child, where)


def _place(node: ast.AST, where: str) -> str:
    """Return the function, the field or the module's constant that a node is in."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return f"{where}.{node.name}".removeprefix(".")
        case ast.Assign() if not where:
            return ast.unparse(node.targets[0])
        case ast.AnnAssign():
            return f"{where}.{ast.unparse(node.target)}".removeprefix(".")
    return where


def _is_fixed(node: ast.AST) -> bool:
    """Return whether a change could only loosen a check of our own, or is none of what runs."""
    match node:
        case ast.Assign():
            return any(isinstance(name, ast.Name) and name.id == "__slots__" for name in node.targets)
        case ast.keyword():
            return node.arg == "strict"
    return False


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=[first, *_]) if type(first) in _COMPARED:
            other = _COMPARED[type(first)]
            yield _change(node, other.__name__, lambda: node.ops.__setitem__(0, other()))
        case ast.BinOp(op=op) if type(op) in _COUNTED and not _is_text(node):
            swapped = _COUNTED[type(op)]
            yield _change(node, swapped.__name__, lambda: setattr(node, "op", swapped()))
        case ast.AugAssign(op=op) if type(op) in _COUNTED:
            swapped = _COUNTED[type(op)]
            yield _change(node, swapped.__name__, lambda: setattr(node, "op", swapped()))
        case ast.BoolOp(op=op):
            junction = ast.Or if isinstance(op, ast.And) else ast.And
            yield _change(node, junction.__name__, lambda: setattr(node, "op", junction()))
        case ast.UnaryOp(op=ast.USub()):
            yield _change(node, "no sign", lambda: setattr(node, "op", ast.UAdd()))
        case ast.If() | ast.While() | ast.IfExp():
            yield _change(node.test, "not", lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test)))
        case ast.Constant(value=bool(value)):
            yield _change(node, str(not value), lambda: setattr(node, "value", not value))
        case ast.Constant(value=int(number)):
            yield _change(node, str(number + 1), lambda: setattr(node, "value", number + 1))


def _is_text(node: ast.BinOp) -> bool:
    """Return whether an operand is a text, of which there is only a sum."""
    return any(
        isinstance(side, ast.JoinedStr | ast.Constant) and _texts(side) for side in (node.left, node.right)
    )


def _texts(side: ast.JoinedStr | ast.Constant) -> bool:
    return isinstance(side, ast.JoinedStr) or isinstance(side.value, str | bytes)


def _change(node: ast.expr | ast.stmt, to: str, apply: Callable[[], None]) -> Change:
    return node.lineno, f"{ast.unparse(node).splitlines()[0][:60]} -> {to}", apply
