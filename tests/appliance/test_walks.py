"""Tests of walks: how many packages somebody passes who follows one thing through the code."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from appliance.compose import Appliance
from appliance.explain.rehearsal import Rehearsal
from appliance.parts.bridge import BridgePart
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.helpers import ROOT
from topologies.loading.loader import loads
from topologies.resolved.resolve import resolve, resolve_all
from topologies.wiring.segments import Wiring, wired

T = TypeVar("T")
TEXT = (ROOT / "topologies/failover.yaml").read_text()
ENTRY = "bus hall-a: listen tcp://127.0.0.1:25703"


def wiring(text: str = TEXT) -> Wiring:
    return wired(loads(text))


def passed(walk: Callable[[], T]) -> tuple[T, set[str]]:
    """Return what a walk returned, and the packages of ours of which functions were called."""
    files, before = set[str](), sys.getprofile()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        found = walk()
    finally:
        sys.setprofile(before)
    inside = [Path(file).relative_to(ROOT) for file in files if file.startswith(f"{ROOT}/")]
    return found, {str(path.parent) for path in inside if path.parts[0] not in ("tests", ".venv")}


def test_a_revision_of_a_bridge_asks_its_record_alone() -> None:
    old = resolve(wiring(), "gw-a")
    new = resolve(wiring(TEXT.replace("pattern: motor", "pattern: engine")), "gw-a").bridges["motor"]
    parts = Appliance(old).parts
    part, buses = parts["bridge motor"], {"hall-a": parts["bus hall-a"]}
    assert isinstance(part, BridgePart)
    revision, found = passed(lambda: part.revise(new, buses))  # type: ignore[arg-type]
    assert [change.detail for change in revision.changes] == ["pattern"]
    assert found == {"appliance/parts", "topologies/resolved", "bus"}


def test_a_rehearsed_frame_passes_the_hubs_the_bridges_and_the_medium_and_no_more() -> None:
    rehearsal = Rehearsal(resolve_all(wiring()))
    frame = pack(PUB, Pattern("motor", "speed"))
    hops, found = passed(lambda: list(rehearsal.run(frame, ENTRY)))
    assert [hop.part for hop in hops] == ["bus hall-a", "bus hall-b", "bridge motor"]
    assert found == {"appliance/explain", "bridges", "bridges/media/can", "bus", "bus/watch", "bus/wire"}
