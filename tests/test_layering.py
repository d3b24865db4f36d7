"""Imports go one way (DESIGN section 2), and pure modules import no I/O. Read off the syntax tree."""

import ast
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "bus": set[str](),
    "bridges": {"bus"},
    "pipeline": {"bus"},
    "devices": {"bus", "pipeline"},
    "topologies": {"bus"},
    "appliance": {"bus", "bridges", "devices", "pipeline", "topologies"},
}
IO = {"socket", "asyncio", "time", "logging", "select", "threading", "random"}
PURE = [
    "bus/batch.py",
    "bus/frame.py",
    "bus/pattern.py",
    "bus/envelope.py",
    "bus/sp.py",
    "bus/tmq/codec.py",
    "bus/tmq/registry.py",
    "bridges/codecs/*.py",
]
ONLY_IN = {
    "can": "bridges/*can*.py",
    "serial": "bridges/uart/port.py",
    "smbus2": "bridges/i2c/*.py",
    "pynng": "bus/*.py",
    "pyspark": "pipeline/*.py",
}


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def nodes(tree: ast.AST, deep: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not is_for_types(node):
            yield node
            if deep:
                yield from nodes(node, deep)


def imports(path: Path, top_level_only: bool = False) -> Iterator[str]:
    """First parts of the absolute names that a module imports at run time."""
    for node in nodes(ast.parse(path.read_text()), not top_level_only):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package: str) -> None:
    forbidden = set(MAY_IMPORT) - MAY_IMPORT[package] - {package}
    assert modules(package)
    found = {str(path): set(imports(path)) & forbidden for path in modules(package)}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize("pattern", PURE)
def test_pure_modules_import_no_io(pattern: str) -> None:
    paths = sorted(ROOT.glob(pattern))
    assert paths
    found = {str(path): set(imports(path)) & IO for path in paths}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_medium_s_library_stays_with_its_medium(library: str) -> None:
    users = {
        str(path.relative_to(ROOT)) for p in MAY_IMPORT for path in modules(p) if library in imports(path)
    }
    assert all(fnmatch(user, ONLY_IN[library]) for user in users)
    late = {p for p in users if library in imports(ROOT / p, top_level_only=True)}
    assert library in ("pynng", "pyspark") or not late


def test_every_package_is_listed_for_installation() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in MAY_IMPORT
        for path in (ROOT / package).rglob("*.py")
    }
    assert sorted(there) == sorted(listed)
