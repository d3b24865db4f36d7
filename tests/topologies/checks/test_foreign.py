"""What other distributions bring: `check` tells of a class that cannot be imported."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from bridges.media import MEDIA
from bridges.protocols import PROTOCOLS
from devices import DEVICES
from tests.topologies.support import GATEWAY, errors

SIDES = ", ".join(f"{{uart: /dev/{name}, protocol: foreign}}" for name in "xy")
BRIDGE = f"bridges: {{b: {{on: gw, join: [bus: p, {SIDES}]}}}}\n"
BUS = GATEWAY + "buses: {p: {on: gw}}\n"
RECORD = """
from dataclasses import dataclass
from typing import Annotated, ClassVar
from bridges.media.medium import Medium
from bridges.protocols.protocol import Protocol
from devices.device import DeviceSpec

class Speaks(Protocol):
    MAKE: ClassVar = "foreign_package.code:Made"
    key: ClassVar = "foreign"
    help: ClassVar = "a protocol of others"
    items: ClassVar = ("bytes",)

@dataclass(frozen=True, slots=True, kw_only=True)
class Carries(Medium):
    LINK: ClassVar = "foreign_package.code:Made"
    key: ClassVar = "foreign"
    help: ClassVar = "a medium of others"
    port: Annotated[int, "a port"] = 1
    device: ClassVar = "x"

@dataclass(frozen=True, slots=True, kw_only=True)
class Serves(DeviceSpec):
    SERVICE: ClassVar = "foreign_package.code:Made"
    key: ClassVar = "foreign"
    help: ClassVar = "a device of others"
    foreign: Annotated[str, "a bus"]
    joins: ClassVar = ()
"""
KINDS: dict[str, tuple[Any, str, str]] = {
    "the protocol": (PROTOCOLS, "Speaks", BUS + BRIDGE),
    "the medium": (MEDIA, "Carries", BUS + "bridges: {b: {on: gw, join: [bus: p, foreign: {}]}}\n"),
    "the device": (DEVICES, "Serves", BUS + "devices: {d: {on: gw, foreign: p}}\n"),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a distribution that has one kind of what others may bring."""
    kinds, record, _ = KINDS[request.param]
    (tmp_path / "foreign_package").mkdir()
    (tmp_path / "foreign_package" / "records.py").write_text(RECORD)
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("foreign", f"foreign_package.records:{record}", kinds.group)
    monkeypatch.setitem(vars(kinds), "_others", {"foreign": entry})
    for name in ("", ".records", ".code"):
        monkeypatch.delitem(sys.modules, f"foreign_package{name}", raising=False)
    return str(request.param)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("Made = Link", "NameError: name 'Link' is not defined (code.py:1)"),
        ("\ndef (", "SyntaxError: invalid syntax (code.py, line 2)"),
        ("import bridges.none", "ModuleNotFoundError: No module named 'bridges.none' (code.py:1)"),
        ("import a_library_that_is_missing", ""),
        ("Made = dict", ""),
    ],
)
def test_a_class_that_could_not_run_is_told_once(kind: str, code: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "foreign_package" / "code.py").write_text(code)
    found = [one for one in errors(KINDS[kind][2]) if "defect" in one]
    assert [one.rpartition(f"{kind} has a defect: ")[2] for one in found] == [words] * bool(words)
