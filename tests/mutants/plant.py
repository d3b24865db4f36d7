"""One mutant in a process: `plant_file` before its module is loaded, `plant_functions` afterwards."""

import ast
import builtins
import gc
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutants.sites import mutated

Function = tuple[str, int]
"""A function of a module: its qualified name and its first line."""


def code_of(path: str, number: int | None) -> CodeType:
    """Return the code of a source, with one change or with none."""
    source = Path(path).read_text()
    return compile(source if number is None else mutated(source, number), path, "exec", dont_inherit=True)


def plant_file(path: str, number: int) -> None:
    """Change the code that is loaded for a file from now on, and never take that from a cache."""
    get_code = SourceFileLoader.get_code

    def changed(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        file = loader.get_filename(fullname)
        return code_of(path, number) if os.path.samefile(file, path) else get_code(loader, fullname)

    SourceFileLoader.get_code = changed  # type: ignore[method-assign, assignment]


def changed_functions(path: str, number: int) -> dict[Function, CodeType]:
    """Return the functions that a change makes different; none if it is in what runs at loading."""
    before = dict(_functions(code_of(path, None)))
    return {key: code for key, code in _functions(code_of(path, number)) if code != before[key]}


def plant_functions(path: str, codes: dict[Function, CodeType]) -> None:
    """Change functions of a module that is loaded."""
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == path:
            one.__code__ = codes.get(function(one.__code__), one.__code__)


def tell(path: str, reached: Callable[[Function], object]) -> None:
    """Let the functions of a module that is loaded tell when they are entered."""
    tree = ast.parse(Path(path).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body[:0] = ast.parse("_reached()").body
    caller = sys._getframe  # noqa: SLF001 - there is no other way that is as quick
    vars(builtins)["_reached"] = lambda: reached(function(caller(1).f_code))
    code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    plant_functions(path, dict(_functions(code)))


def function(code: CodeType) -> Function:
    return code.co_qualname, code.co_firstlineno


def _functions(code: CodeType) -> Iterator[tuple[Function, CodeType]]:
    """Yield the functions in a code: no bodies of classes, and no comprehensions, which have no object."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            is_comprehension = inner.co_name.startswith("<") and inner.co_name != "<lambda>"
            if inner.co_flags & inspect.CO_OPTIMIZED and not is_comprehension:
                yield function(inner), inner
            yield from _functions(inner)
