"""Each extra alone: its commands run, and others say in one line, at once, which extra they need.

Modules that an extra does not bring are hidden from a process that runs commands. Which package brings which
module, and what it needs, is as it is installed here.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bus.extras import LIBRARIES
from tests.helpers import ROOT
from tests.helpers.tree import MAY_IMPORT, modules

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: Final[dict[str, list[str]]] = PROJECT["optional-dependencies"]
OURS: Final = {"bench", "docs", "quick", "dev", "fuzz"}
"""The extras of who works on the appliance."""
USERS: Final = ["", *(name for name in EXTRAS if name not in OURS)]
CLIENT: Final = {"pyspark-client": "pyspark[connect]"}
"""The client has the modules of pyspark without its jars."""
OF_OTHERS: Final = {"pytest", "_typeshed"}
"""What our plugin finds with who uses it, and what only a type checker sees."""
RUNS: Final = {"numpy", "pyarrow"}
SPARK: Final = RUNS | {"pyspark", "pandas", "py4j"}
SAIL: Final = RUNS | {"pysail", "pyspark", "pandas", "grpc"}
CAN: Final = "can:239.74.163.77?interface=udp_multicast"

CANDUMP = "(1700000000.000000) can0 100#0011223344556677\n(1700000000.010000) can0 100#0011223344556688\n"
DBC = """\
VERSION ""
BU_: ECU
BO_ 256 Engine: 8 ECU
 SG_ Rpm : 0|16@1+ (1,0) [0|8000] "rpm" ECU
"""


class Case(NamedTuple):
    """A command, and the modules that it takes. What `starts` an engine or serves is only run without
    them."""

    words: str
    needs: set[str]
    starts: bool = False


CASES: Final = (
    Case("check {0}/plant.yaml", set()),
    Case("capture import {0}/drive.log --directory imported", RUNS),
    *(Case(f"capture export {{0}}/drive.log o.{one}", RUNS) for one in ("asc", "blf", "trc", "mf4", "pcap")),
    Case("capture export {0}/drive.log o.csv", RUNS),
    Case("capture export {0}/drive.log out.log.gz", RUNS),
    Case("capture export {0}/drive.log out.log.zst", RUNS),
    Case("capture export {0}/capture out.pcapng", RUNS),
    Case("capture export {0}/drive.log out.mcap", RUNS | {"mcap"}),
    Case(f"capture replay {{0}}/drive.log {CAN}&protocol=raw&root=car&send=all --fast", RUNS | {"msgpack"}),
    Case("pipeline compact {0}/capture", RUNS),
    Case("pipeline load {0}/capture --to plain", RUNS),
    Case("pipeline load {0}/capture --to table --delta", RUNS | {"deltalake"}),
    Case("cert new ca.pem", {"cryptography"}),
    Case("query tcp://127.0.0.1:1 x --timeout 0.1", {"msgpack"}),
    Case("syndicate tcp://127.0.0.1:0", {"msgpack", "lark", "re2"}, starts=True),
    Case("demo --seconds 1 --no-capture", {"rich", "psutil", "serial", "msgpack"}, starts=True),
    Case("recv uart:/dev/no-line --timeout 0.01 --count 1", {"serial"}),
    Case("recv uart:/dev/no-line?protocol=nmea --timeout 0.01 --count 1", {"serial"}),
    Case("recv i2c:99?targets=0x42 --timeout 0.01 --count 1", {"smbus2"}),
    Case("recv can:x?interface=socketcand&host=127.0.0.1&port=1&node=1 --timeout 0.01 --count 1", {"can"}),
    Case("recv can:/dev/no-line?interface=slcan&node=1 --timeout 0.01 --count 1", {"can", "serial"}),
    Case(f"recv {CAN}&node=1 --timeout 0.01 --count 1", {"msgpack"}),
    Case("recv udp:127.0.0.1:9?protocol=lines&match=a(?P<x>.) --timeout 0.01 --count 1", {"re2"}),
    Case(f"recv {CAN}&protocol=dbc&file={{0}}/car.dbc&root=car --timeout 0.01", {"msgpack", "cantools"}),
    Case("traffic udp:127.0.0.1:9?protocol=cannelloni&send=all --dbc {0}/car.dbc --count 1", {"cantools"}),
    *(Case(f"{job} {{0}}/capture", SPARK - {"pandas"}, starts=True) for job in ("audit", "report")),
    Case("last {0}/drive.log", SPARK - {"pandas"}, starts=True),
    Case("report {0}/drive.log --signals", SPARK, starts=True),
    Case("signals {0}/drive.log --stats", SPARK, starts=True),
    Case("pipeline sql {0}/capture -e SELECT-1", SPARK - {"pandas"}, starts=True),
    Case("pipeline watch {0}/capture --output live --signals", SPARK, starts=True),
    Case("warm", SPARK - {"pandas"}, starts=True),
    Case("pipeline serve --port 0", SPARK - {"pandas"}, starts=True),
    Case("audit s3://plant/capture", SPARK - {"pandas"}, starts=True),
    Case("audit {0}/capture --remote sc://127.0.0.1:1", SPARK | {"grpc"}),
    Case("audit {0}/capture --engine sail", SAIL, starts=True),
    Case("signals {0}/drive.log --engine sail --stats --dbc {0}/car.dbc", SAIL | {"cantools"}, starts=True),
    Case("signals {0}/drive.log --engine sail --output s --delta", SAIL | {"deltalake"}, starts=True),
)  # fmt: skip


def asked(extra: str) -> list[Requirement]:
    """Return what a plain installation ("") or one with an extra asks for, without that of other extras."""
    texts = [*PROJECT["dependencies"], *(EXTRAS[extra] if extra else ())]
    return [Requirement(CLIENT.get(Requirement(text).name, text)) for text in texts]


def closure(wanted: list[Requirement]) -> Iterator[str]:
    """Yield the names of packages, and of all that they need."""
    seen = set[str]()
    while wanted:
        one = wanted.pop()
        if str(one) in seen:
            continue
        seen.add(str(one))
        if one.name == "buscoupler":
            wanted += [need for extra in one.extras for need in asked(extra)]
            continue
        yield canonicalize_name(one.name)
        try:
            more = [Requirement(text) for text in requires(one.name) or ()]
        except PackageNotFoundError:
            pytest.skip(f"{one.name} is not installed")
        extras = one.extras or {""}
        wanted += [
            need
            for need in more
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
        ]


@cache
def packages() -> dict[str, list[str]]:
    """Return the packages that each module of other projects is in, as all that is installed says."""
    return {name: [*map(canonicalize_name, ones)] for name, ones in packages_distributions().items()}


@cache
def brought(extra: str) -> frozenset[str]:
    """Return the modules of other projects that an installation with an extra has."""
    its = {*closure(asked(extra))}
    return frozenset(name for name, ones in packages().items() if its & {*ones})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a capture, files of the field, a database and a topology."""
    pytest.importorskip("pyarrow")
    from pipeline.input import sample

    place = tmp_path_factory.mktemp("files")
    sample.write(place / "capture")
    (place / "drive.log").write_text(CANDUMP)
    (place / "car.dbc").write_text(DBC)
    (place / "plant.yaml").write_text(
        "name: p\ngateways: {gw: {address: 127.0.0.1}}\nbuses: {b: {on: gw, listen: ipc:///tmp/b}}\n"
    )
    return place


@pytest.mark.parametrize("extra", USERS)
def test_an_extra_alone_runs_its_commands_and_others_name_theirs(
    extra: str, place: Path, tmp_path: Path
) -> None:
    have = brought(extra)
    has_spark = "pyspark" in have and extra != "sail"
    cases = [
        case
        for case in CASES
        if not (case.starts and case.needs <= have) and (has_spark or "pyspark" not in case.needs - SAIL)
    ]
    hidden = sorted(packages().keys() - have - {*MAY_IMPORT})
    words = [case.words.format(place).split() for case in cases]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.buscoupler.alone", json.dumps([hidden, words])],
        cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    wrong = [
        f"{case.words}: {why}"
        for case, (status, said) in zip(cases, json.loads(done.stdout), strict=True)
        if (why := fault(case, have, status, said))
    ]
    assert not wrong, "\n".join(wrong)


def fault(case: Case, have: frozenset[str], status: int | None, said: str) -> str:
    """Return what is wrong with what a command said where only some modules are there; "" if nothing is."""
    if "Traceback" in said or status is None:
        return f"a traceback: {said[-500:]}"
    found = re.findall(r"install 'buscoupler\[(\w+)\]'", said)
    missing = case.needs - have
    if not missing:
        return f"it has all that it needs: {said}" if found else ""
    if status not in (1, 2) or not found or len(said.splitlines()) > 1:
        return f"no single line of what is missing ({', '.join(sorted(missing))}): {status}, {said}"
    return "" if missing & brought(found[0]) else f"{found[0]} brings nothing that is missing"


def imports(path: Path) -> Iterator[str]:
    """Yield the first parts of the names of modules that a module imports at any time."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_each_module_of_other_projects_is_of_the_plain_installation_or_in_the_table() -> None:
    known = {*MAY_IMPORT, *sys.stdlib_module_names, *LIBRARIES, *brought(""), *OF_OTHERS}
    used = {
        (str(path.relative_to(ROOT)), name)
        for package in MAY_IMPORT
        for path in modules(package)
        if "embedded" not in path.parts
        for name in imports(path)
    }
    assert {(path, name) for path, name in used if name not in known} == set()


@pytest.mark.parametrize("module", LIBRARIES)
def test_the_extra_of_the_table_brings_the_module_and_the_plain_installation_does_not(module: str) -> None:
    package, extra = LIBRARIES[module]
    assert canonicalize_name(package) in {*closure(asked(extra))}
    assert canonicalize_name(package) not in {*closure(asked(""))}


@pytest.mark.parametrize("extra", ["pipeline", "connect", "engines", "sail"])
def test_bounds_are_no_lower_than_what_the_client_of_spark_takes(extra: str) -> None:
    """It asks for some packages only when they are used: by its extra `sql`."""
    pytest.importorskip("pyspark")
    ours = {one.name: one for one in everything(extra)}
    for text in requires("pyspark") or ():
        its = Requirement(text)
        if (
            its.marker is None
            or its.marker.evaluate({"extra": ""})
            or not its.marker.evaluate({"extra": "sql"})
        ):
            continue
        assert its.name in ours, f"{extra} lacks {its.name}"
        lowest = [one.version for one in ours[its.name].specifier if one.operator in (">=", "==")]
        assert lowest, f"{extra} has no lower bound of {its.name}"
        assert its.specifier.contains(lowest[0]), f"{extra}: {ours[its.name]}, but pyspark takes {its}"


def everything(extra: str) -> Iterator[Requirement]:
    """Yield what an extra asks for by itself and by those that it includes."""
    for one in asked(extra):
        if one.name == "buscoupler":
            for other in one.extras:
                yield from everything(other)
        else:
            yield one
