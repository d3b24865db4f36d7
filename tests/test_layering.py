"""Tests on the syntax tree: imports go one way and never in a circle, and pure modules import no I/O."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.tree import MAY_IMPORT, PURE, claims_purity, modules

IO = {"socket", "asyncio", "time", "logging", "select", "threading", "random", "secrets"}
ONLY_IN = {
    "can": "bridges/*can*.py",
    "cantools": "bridges/protocols/dbc/*.py",
    "serial": "bridges/media/uart/port*.py",
    "smbus2": "bridges/media/i2c/*.py",
    "lark": "devices/syndication/query/*.py",
    "re2": "devices/syndication/query/*.py bridges/protocols/lines/*.py",
    "pynng": "bus/*.py",
    "websockets": "bus/wire/websocket/*.py",
    "pyspark": "pipeline/*.py",
}
MADE = re.compile(
    r"bridges\.media\.\w+\.(link|spoken)|bridges\.protocols\.\w+\.(translator|plan)|devices(\.dbp)?\.\w+\.service"
)
QUOTED = re.compile(r"""["']([a-z_]\w*(?:\.\w+)*)(?::[^"'\n]*)?["']""")
"""A string that may name a module. Found in the text: a tree of each module takes seconds to walk."""
WORD = re.compile(r"\w+")
CIRCLES = 0


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def nodes(tree: ast.AST, late: bool = False, typed: bool = False) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Yield the statements of a tree (imports are in no expression), whether each is in another one, and
    whether only a type checker sees it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            only_typed = typed or is_for_types(node)
            yield node, late, only_typed
            yield from nodes(node, True, only_typed)


@cache
def every_name(path: Path) -> frozenset[tuple[str, bool, bool]]:
    """Dotted names that a module imports, of modules and of what is in them: see `nodes`."""
    found = set[tuple[str, bool, bool]]()
    for node, late, typed in nodes(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update((name.name, late, typed) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add((node.module, late, typed))
            found.update((f"{node.module}.{name.name}", late, typed) for name in node.names)
    return frozenset(found)


def names(path: Path, deep: bool = True, types: bool = False) -> frozenset[str]:
    """Dotted names that a module imports. `deep`: also late, within functions. `types`: also those that only
    a type checker sees."""
    every = every_name(path)
    return frozenset(name for name, late, typed in every if (deep or not late) and (types or not typed))


def named(path: Path) -> set[str]:
    """Modules that strings of a module name ("bus.hub" or "bus.hub:Hub"), to be imported when needed.

    Without those that the record of a medium or a device names as its link or its service: these
    modules import the record.
    """
    found = set(QUOTED.findall(path.read_text()))
    records = (
        "bridges/media/*/medium.py",
        "bridges/protocols/*/protocol.py",
        "devices/device.py",
        "devices/*/device.py",
        "devices/dbp/*/device.py",
    )
    is_record = any(path.relative_to(ROOT).match(record) for record in records)
    return {name for name in found if not (is_record and MADE.fullmatch(name))}


def imports(path: Path, deep: bool = True) -> set[str]:
    """First parts of the absolute names that a module imports at run time."""
    return {name.partition(".")[0] for name in names(path, deep)}


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package: str) -> None:
    forbidden = set(MAY_IMPORT) - MAY_IMPORT[package] - {package}
    assert modules(package)
    found = {str(path): imports(path) & forbidden for path in modules(package)}
    assert not {path: names for path, names in found.items() if names}


def test_topologies_know_of_bridges_only_tables_and_records() -> None:
    allowed = {
        "bridges.durable.settings",
        "bridges.durable.settings.ACKNOWLEDGES",
        "bridges.durable.settings.Durable",
        "bridges.durable.settings.check_durable",
        "bridges.front.settings",
        "bridges.front.settings.Front",
        "bridges.front.settings.Limit",
        "bridges.judge",
        "bridges.judge.Judge",
        "bridges.judge.Renamed",
        "bridges.media",
        "bridges.media.MEDIA",
        "bridges.media.medium",
        "bridges.media.medium.Medium",
        "bridges.media.subject",
        "bridges.media.subject.Subject",
        "bridges.media.subject.bounds",
        "bridges.policy",
        "bridges.policy.Policy",
        "bridges.policy.STEP_S",
        "bridges.protocols",
        "bridges.protocols.PROTOCOLS",
        "bridges.protocols.protocol",
        "bridges.protocols.protocol.Claim",
        "bridges.protocols.protocol.Protocol",
        "bridges.protocols.protocol.Way",
    }
    found = {name for path in modules("topologies") for name in names(path) if name.startswith("bridges")}
    assert found <= allowed


def test_the_pipeline_knows_of_bridges_only_databases_of_can_messages() -> None:
    found = {name for path in modules("pipeline") for name in names(path) if re.match(r"bridges\b", name)}
    assert {name for name in found if not re.match(r"bridges\.(items|protocols\.dbc)\b", name)} == set()


def test_topologies_know_of_devices_only_their_table_and_records() -> None:
    allowed = {"devices", "devices.DEVICES", "devices.device"}
    allowed |= {"devices.device.DeviceSpec", "devices.device.Flow"}
    found = {name for path in modules("topologies") for name in names(path) if re.match(r"devices\b", name)}
    assert found <= allowed


def test_records_of_media_and_devices_load_no_link_and_no_driver() -> None:
    code = """
import sys
from bridges.media import MEDIA
from devices import DEVICES
from topologies.checks.checker import check
from topologies.loading.loader import load
assert all(MEDIA.find(key).key == key for key in MEDIA.ours())
assert all(DEVICES.find(key).key == key for key in DEVICES.ours())
print(*sys.modules)
"""
    loaded = set(subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).split())
    assert "bridges.media.can.medium" in loaded
    assert not loaded & {"asyncio", "can", "importlib.metadata", "serial", "smbus2", "socket", "bus.hub"}
    assert not {name for name in loaded if fnmatch(name, "bridges.*.link")}
    assert {name for name in loaded if fnmatch(name, "devices.tap*")} == {"devices.tap", "devices.tap.device"}


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The sets of modules that import each other, by way of others too."""
    reach = {name: set[str]() for name in graph}
    for start, seen in reach.items():
        left = [start]
        while left:
            new = graph[left.pop()] - seen
            seen |= new
            left += new
    rings = (frozenset(other for other in reach[name] if name in reach[other]) for name in graph)
    return {ring for ring in rings if ring}


def packages(name: str) -> set[str]:
    """The packages around a module: `a.b` and `a` for `a.b.c`."""
    return {name[:end] for end, letter in enumerate(name) if letter == "."}


def graph() -> dict[str, set[str]]:
    """Each module with those that it imports at any time; a package comes before what is in it."""
    paths = {dotted(path): path for package in MAY_IMPORT for path in modules(package)}
    made = dict[str, set[str]]()
    for name, path in paths.items():
        direct = (names(path, types=True) | named(path)) & set(paths)
        around = {package for other in direct for package in packages(other)} - packages(name)
        made[name] = {*direct, *around} - {name}
    return made


def test_no_modules_import_each_other() -> None:
    assert len(circles(graph())) <= CIRCLES


def rooms(package: str) -> dict[str, set[str]]:
    """Each folder of a package with those that its modules import."""
    made = {
        f"{package}.{folder.name}": set[str]() for folder in (ROOT / package).iterdir() if folder.is_dir()
    }
    for room, others in made.items():
        found = {name for path in modules(room.replace(".", "/")) for name in names(path, types=True)}
        others |= {".".join(name.split(".")[:2]) for name in found} & made.keys() - {room}
    return made


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_rooms_of_a_package_import_one_way(package: str) -> None:
    assert not circles(rooms(package))


def test_a_circle_is_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == {frozenset("bc")}


@pytest.mark.parametrize("pattern", PURE)
def test_pure_modules_import_no_io(pattern: str) -> None:
    paths = sorted(ROOT.glob(pattern))
    assert paths
    found = {str(path): imports(path) & IO for path in paths}
    assert not {path: names for path, names in found.items() if names}


def test_a_module_that_says_it_is_pure_is_held_to_it() -> None:
    paths = [path for package in MAY_IMPORT for path in modules(package) if claims_purity(path)]
    assert len(paths) > 10
    found = {str(path): imports(path) & IO for path in paths}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_medium_s_library_stays_with_its_medium(library: str) -> None:
    users = {
        str(path.relative_to(ROOT)) for p in MAY_IMPORT for path in modules(p) if library in imports(path)
    }
    assert all(any(fnmatch(user, place) for place in ONLY_IN[library].split()) for user in users)
    late = {p for p in users if library in imports(ROOT / p, deep=False)}
    assert library in ("pynng", "pyspark", "websockets") or not late


def modules_with(pattern: str) -> set[str]:
    paths = (path for package in MAY_IMPORT for path in modules(package))
    return {str(path.relative_to(ROOT)) for path in paths if re.search(pattern, path.read_text())}


def test_all_listeners_accept_by_one_class_which_shares_descriptors_among_hosts() -> None:
    """Whoever is new here belongs in the suite of `tests/conformance/listeners.py`, too."""
    others = r"\.accept\(\)|\b(start_server|start_unix_server|create_unix_server)\("
    assert modules_with(others) == {"bus/embedded/buscoupler_tmq.py", "bus/transports/sockets.py"}
    assert modules_with(r"(?<!class )\bAcceptor\(") == {
        "appliance/local/responder.py",
        "appliance/web/service.py",
        "bus/serving/listener.py",
        "bus/transports/listening.py",
        "devices/dbp/proxy/crossing.py",
        "devices/dbp/proxy/proxied.py",
    }


FOLDERS = sorted({path.parent for package in MAY_IMPORT for path in modules(package)})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_package_says_what_is_in_it(folder: Path) -> None:
    text = (folder / "__init__.py").read_text()
    assert ast.get_docstring(ast.parse(text))
    inside = [path.stem for path in folder.glob("*.py")]
    inside += [path.parent.name for path in folder.glob("*/__init__.py")]
    public = {name for name in inside if not name.startswith("_")}
    assert {name for name in public if not re.search(rf"\b{name}\b", text)} == set()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_package_has_what_it_offers(folder: Path) -> None:
    package = import_module(dotted(folder / "__init__.py"))
    assert [name for name in vars(package).get("__all__", ()) if not hasattr(package, name)] == []


def test_tests_have_the_tree_of_what_they_test() -> None:
    others = {"conformance", "helpers", "kernel", "system", "docs", "examples", "benchmarks"}
    others |= {"chaos", "fuzz", "mutants"}
    found = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    mirrored = {path for path in found if path.parts and path.parts[0] not in others}
    assert mirrored - {folder.relative_to(ROOT) for folder in FOLDERS} == set()


def imports_of_tests(path: Path) -> set[str]:
    """Return the test modules that a module imports."""
    found = {name for name in names(path, types=True) if re.search(r"\btests\b.*\.test_\w+$", name)}
    return {name for name in found if (ROOT / name.replace(".", "/")).with_suffix(".py").exists()}


def users(of: Callable[[Path], set[str]], words: set[str]) -> dict[str, set[str]]:
    """Return the modules of tests that import what `of` names, with what that is. Whoever imports it has one
    of `words` in its text; the others are not parsed, which takes seconds."""
    paths = (path for path in modules("tests") if not words.isdisjoint(WORD.findall(path.read_text())))
    found = {str(path.relative_to(ROOT)): of(path) for path in paths}
    return {path: imported for path, imported in found.items() if imported}


def test_no_test_module_imports_another() -> None:
    why = "what they share belongs in a module of its own, whose name does not begin with test_"
    assert users(imports_of_tests, {path.stem for path in (ROOT / "tests").rglob("test_*.py")}) == {}, why


def test_only_tests_of_benchmarks_import_them() -> None:
    found = users(
        lambda path: {name for name in names(path) if re.match(r"benchmarks\b", name)}, {"benchmarks"}
    )
    left = {path: names for path, names in found.items() if not fnmatch(path, "tests/benchmarks/*.py")}
    assert left == {}, "what tests and benchmarks share belongs in tests/rigs"
