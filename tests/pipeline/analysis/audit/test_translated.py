"""Sides with a protocol, other names or fewer frames: healthy ones are Green, and true losses are found."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from bridges.protocols import PROTOCOLS
from bus.renaming import Renaming
from bus.wire.pattern import Pattern
from capture.pcapng import Packet
from capture.schema import Kind, Verdict
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.shared.inventory import Version
from pipeline.analysis.shared.naming import learn
from pipeline.analysis.shared.sides import STRIPPED
from pipeline.cache import release
from pipeline.engine.choice import SAIL
from tests.pipeline.analysis.hand_made import MS, RX, START_NS, TX, Capture, frame
from tests.pipeline.analysis.judged import answered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAMES = 30
GW, BUS, WIRE, BRIDGE = "gw-a", "bus a", "the wire", "bridge a"


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    yield
    release()


class Plant(Capture):
    """A capture of one gateway, whose ledgers are written at the end."""

    def counted(self, hub: str, bus: str, way: Any, **counts: int) -> None:
        for word, count in counts.items():
            reason = word.replace("_", " ")
            verdict = Verdict.OK if word in ("items", "sent", "received") else Verdict.OTHER
            at, number = START_NS + 60_000 * MS, self._number(GW, 1)
            self.packets.append(
                Packet(at, GW, hub, bus, "link", int(way), Kind.LEDGER.value, verdict.value, 5, number, count,
                       reason.encode())
            )  # fmt: skip


def told(made: Capture, *sides: dict[str, Any]) -> None:
    made.topology(
        GW, {BRIDGE: {"gateways": [GW], "pattern": [], "sides": list(sides)}, BUS: {"gateways": [GW]}}
    )


def device(protocol: str, in_bridge: int = 0, untold: int = 0, unsent: int = 0, echoes: bool = True) -> Plant:
    """Carry frames from the items of a device to a bus, and from there to the device; some are lost in the
    bridge, become nothing, or are neither sent nor dropped. A device that `echoes` says what it was told."""
    made = Plant()
    for number in range(FRAMES):
        at, reading = 100.0 * number, frame("gps/pos", str(number))
        made.seen(at, GW, BRIDGE, WIRE, RX, reading)
        if number >= in_bridge:
            made.seen(at + 1, GW, BRIDGE, BUS, TX, reading)
        told_it = frame("show/text", str(number))
        made.seen(at + 30, GW, BUS, BUS, RX, told_it)
        made.seen(at + 30, GW, BRIDGE, BUS, RX, told_it)
        made.seen(at + 31, GW, BRIDGE, WIRE, TX, told_it)
        if echoes:
            made.seen(at + 35, GW, BRIDGE, WIRE, RX, told_it)
            made.seen(at + 36, GW, BRIDGE, BUS, TX, told_it)
    came = 2 * FRAMES if echoes else FRAMES
    made.counted(BRIDGE, WIRE, RX, items=came + untold + 3, received=came, unmatched=3)
    if untold:
        made.counted(BRIDGE, WIRE, RX, untold=untold)
    made.counted(BRIDGE, WIRE, TX, items=FRAMES - 2 - unsent, sent=FRAMES - 2 - unsent, out_of_range=2)
    told(made, {"segment": BUS}, {"segment": WIRE, "protocol": protocol})
    return made


@pytest.mark.engines(SAIL)
def test_every_protocol_is_compared_by_counts(spark: "SparkSession") -> None:
    made = Plant()
    keys = [key for key, kind in PROTOCOLS.known() if kind.items]
    assert len(keys) > 8
    hubs = {}
    for number, key in enumerate([*keys, "of another distribution"]):
        hub, wire = f"bridge {key}", f"wire of {key}"
        hubs[hub] = {"gateways": [GW], "sides": [{"segment": BUS}, {"segment": wire, "protocol": key}]}
        for n in range(4):
            reading = frame(f"{number}/x", str(n))
            made.seen(1000.0 * number + 100 * n, GW, hub, wire, RX, reading)
            made.seen(1000.0 * number + 100 * n + 1, GW, hub, BUS, TX, reading)
        made.counted(hub, wire, RX, items=5, received=4, malformed=1)
    made.topology(GW, hubs)
    found = audit(made.rows(spark))
    assert found.summary.collect() == []
    rows = {
        (row.protocol, row["items"], row.frames, row.refused, row.lost, row.known)
        for row in found.translated.collect()
    }
    assert rows == {(key, 5, 4, 1, 0, "") for key in (*keys, "of another distribution")}


# Amber: what a device says wrongly is told, as everywhere.
PLANTED: dict[str, tuple[dict[str, int], str, str]] = {
    "healthy": ({}, "amber", "1 side with a protocol was compared by counts"),
    "lost in the bridge": ({"in_bridge": 2}, "red", "of their copies, 2 missing on a segment"),
    "an item became nothing": ({"untold": 3}, "red", "3 lost in translation in by lines at the wire"),
    "a frame was not sent": ({"unsent": 4}, "red", "4 lost in translation out by lines at the wire"),
}


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("echoes", [False, True])
def test_a_planted_loss_beside_a_device_is_found_and_named(
    spark: "SparkSession", planted: str, echoes: bool
) -> None:
    lost, color, words = PLANTED[planted]
    found = answered(device("lines", **lost, echoes=echoes), spark)
    assert (found.color, words in found.text) == (color, True), found.text
    assert ("lost" in found.text or "missing" in found.text) == bool(lost)


@pytest.mark.engines(SAIL)
def test_nothing_is_said_of_a_loss_where_the_recorder_has_no_end(spark: "SparkSession") -> None:
    made = device("lines", unsent=4)
    made.goes_on = True
    found = answered(made, spark)
    assert "what bridge a lost at the wire is not known: its recorder has no end" in found.text
    assert found.color == "amber"


@pytest.mark.engines(SAIL)
def test_a_device_that_only_answers_and_results_of_writes_are_no_loss(spark: "SparkSession") -> None:
    made = Plant()
    for number in range(FRAMES):
        at, reading = 100.0 * number, frame("meter/power", str(number))
        made.seen(at, GW, BRIDGE, WIRE, RX, reading)
        made.seen(at + 1, GW, BRIDGE, BUS, TX, reading)
        if number % 10 == 0:
            command, result = frame("meter/relay/set", "1"), frame("meter/relay/result", "done")
            made.seen(at + 10, GW, BUS, BUS, RX, command)
            made.seen(at + 10, GW, BRIDGE, BUS, RX, command)
            made.seen(at + 11, GW, BRIDGE, WIRE, TX, command)
            made.seen(at + 20, GW, BRIDGE, WIRE, RX, result)
            made.seen(at + 21, GW, BRIDGE, BUS, TX, result)
    made.counted(BRIDGE, WIRE, RX, items=FRAMES, received=FRAMES + 3)
    made.counted(BRIDGE, WIRE, TX, items=FRAMES + 3, sent=3)
    told(made, {"segment": BUS}, {"segment": WIRE, "protocol": "modbus"})
    found = answered(made, spark)
    assert (found.color, found.status) == ("green", 0), found.text


@dataclass
class Front:
    """The setting of a side towards the bus: in the topology, and what it makes of a name."""

    told: dict[str, Any]
    inside: str
    lost_is_seen: bool = True
    unseen: str = "amber"


def pairs(**settings: Any) -> dict[str, Any]:
    made = Renaming(**settings).pairs()
    return {"renamed": True, "names": [[list(one), list(other)] for one, other in made]}


FRONTS = {
    "none": Front({}, "hall/temp"),
    "prefix": Front(pairs(prefix=("plant",)), "plant/hall/temp"),
    "strip": Front(pairs(strip=("hall",)), "temp"),
    "rename": Front(pairs(rename=((("hall", "temp"), ("hall", "t")),)), "hall/t"),
    "strip a number": Front({**pairs(prefix=("plant",)), "strip": 1}, "plant/temp"),
    "strip a number, older": Front({"renamed": True, "strip": 1}, "temp", False, "green"),
    "an older capture": Front({"renamed": True}, "cold", False),
}


NAMELESS = {"prefix": "yard/temp", "strip": "", "rename": "hall/temp"}
"""Names inside the bridge that frames on the bus cannot have."""


def crossed(front: Front, lost: int) -> Plant:
    """Carry frames from a bus that gives them other names to CAN, but for some that no bridge takes."""
    made = Plant()
    for number in range(FRAMES):
        at, data = 100.0 * number, str(number)
        made.seen(at, GW, BUS, BUS, RX, frame("hall/temp", data))
        if number >= lost:
            made.seen(at + 1, GW, BRIDGE, BUS, RX, frame(front.inside, data))
            made.seen(at + 2, GW, BRIDGE, "can", TX, frame(front.inside, data))
    told(made, {"segment": BUS, **front.told}, {"segment": "can"})
    return made


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("name", FRONTS)
@pytest.mark.parametrize("lost", [0, 3])
def test_frames_are_followed_through_sides_that_rename(spark: "SparkSession", name: str, lost: int) -> None:
    front = FRONTS[name]
    found = answered(crossed(front, lost), spark)
    if front.lost_is_seen:
        assert found.text.startswith(f"{FRAMES} frames entered")
        assert found.color == ("red" if lost else "green"), found.text
        assert (f"{lost} missing on a segment" in found.text) == bool(lost)
    else:
        assert found.color == front.unseen, found.text
        assert "what passed between bus a and bridge a is not known" in found.text


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("way", ["prefix", "strip", "rename"])
def test_frames_that_have_no_name_at_the_side_where_they_would_leave_are_told_and_no_fault(
    spark: "SparkSession", way: str
) -> None:
    made, front = Plant(), FRONTS[way]
    for number in range(FRAMES):
        inside = frame(front.inside if number % 3 else NAMELESS[way], str(number))
        made.seen(100.0 * number, GW, BRIDGE, "can", RX, inside)
        made.seen(100.0 * number + 1, GW, BRIDGE, BUS, TX, inside)  # a tap sees what is handed to the side
    made.counted(BRIDGE, BUS, TX, sent=FRAMES - FRAMES // 3, no_name=FRAMES // 3)
    told(made, {"segment": BUS, **front.told}, {"segment": "can"})
    found = answered(made, spark)
    assert (found.color, found.status) == ("green", 0), found.text
    assert f"{FRAMES // 3} stayed on their side" in found.text


STRIP: dict[str, Any] = {"segment": BUS, "renamed": True, "strip": 1, "names": [[[], []]]}
RENAMED: dict[str, Any] = {"segment": BUS, "renamed": True, "names": [[[], [1]]]}


@pytest.mark.parametrize(
    ("sides", "others", "cut"),
    [
        ([STRIP, {"segment": "can"}], {}, ""),
        ([STRIP, {"segment": "can", "allow": [[5]]}], {}, ""),  # a filter inside, where tokens are gone
        ([STRIP, {**STRIP, "segment": "bus c"}], {}, ""),  # both ways lead inside
        ([STRIP, {"segment": "can"}], {"bridge y": [{"segment": BUS}, {"segment": "uart"}]}, ""),
        ([STRIP, {"segment": "can"}], {"bridge y": [RENAMED, {"segment": "uart"}]}, ""),
        ([STRIP, {"segment": "can"}], {"bridge y": [{"segment": BUS, "deny": [[5]]}]}, BRIDGE),
        ([STRIP, {"segment": "can"}], {"bridge y": [STRIP, {"segment": "can"}]}, ""),  # side by side
        # what one strips would have to be put back for the other
        ([STRIP, {"segment": "can"}], {"bridge y": [{**STRIP, "strip": 2}, {"segment": "uart"}]}, "bridge y"),
    ],
)
def test_a_number_of_tokens_is_followed_unless_somebody_needs_them(
    sides: list[dict[str, Any]], others: dict[str, Any], cut: str
) -> None:
    hubs = {BRIDGE: {"sides": sides}, **{name: {"sides": its} for name, its in others.items()}}
    found = learn([Version(GW, 0, hubs)], {})
    assert found.cuts.keys() == ({(cut, BUS)} if cut else set())
    assert all(one.why == STRIPPED for one in found.cuts.values())
    assert not any(step.guesses for its in found.steps.values() for step in its)


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("lost", [0, 1])
def test_two_names_that_become_one_are_followed_and_what_has_too_few_tokens_stays_out(
    spark: "SparkSession", lost: int
) -> None:
    front = {**pairs(rename=((("temp",), ("t",)),), prefix=("p",)), "strip": 2}
    made, ways = Plant(), [("hall/1/temp", "p/t"), ("yard/2/temp", "p/t"), ("hall/1", "p"), ("hall", "")]
    ways.append(("hall/1/wet/x", "p/wet/x"))
    for number, (name, inside) in enumerate(ways * 3):
        at, data = 100.0 * number, str(number)
        made.seen(at, GW, BUS, BUS, RX, frame(name, data))
        if inside and number >= lost:
            made.seen(at + 1, GW, BRIDGE, BUS, RX, frame(inside, data))
            made.seen(at + 2, GW, BRIDGE, "can", TX, frame(inside, data))
    made.summaries.clear()
    made.counted(BRIDGE, BUS, RX, no_name=3)
    told(made, {"segment": BUS, **front}, {"segment": "can"})
    found = answered(made, spark)
    assert found.color == ("red" if lost else "green"), found.text
    assert ("of their copies, 1 missing on a segment" in found.text) == bool(lost)


THINNED: dict[str, dict[str, Any]] = {
    "unchanged": {"refresh_ms": 10000},
    "limit": {"limited": True},
    "no_name": {},
}


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("reason", THINNED)
@pytest.mark.parametrize("lost", [0, 2])
def test_what_a_side_refused_is_no_loss_and_what_is_beyond_is_one(
    spark: "SparkSession", reason: str, lost: int
) -> None:
    made = crossed(FRONTS["none"], lost + 5)
    made.summaries.clear()
    made.counted(BRIDGE, BUS, RX, **{reason: 5})
    told(made, {"segment": BUS, **THINNED[reason]}, {"segment": "can"})
    found = answered(made, spark)
    assert found.color == ("red" if lost else "green"), found.text
    assert (f"{lost} missing on a segment" in found.text) == bool(lost)


@pytest.mark.engines(SAIL)
def test_opaque_messages_are_followed(spark: "SparkSession") -> None:
    made = Plant()
    for number in range(FRAMES):
        at, data = 100.0 * number, str(number)
        made.seen(at, GW, BUS, BUS, RX, data.encode())
        if number > 1:
            made.seen(at + 1, GW, BRIDGE, BUS, RX, frame("words/free", data))
            made.seen(at + 2, GW, BRIDGE, "can", TX, frame("words/free", data))
    told(
        made, {"segment": BUS, "renamed": True, "opaque": list(Pattern("words", "free"))}, {"segment": "can"}
    )
    found = answered(made, spark)
    assert found.text.startswith(f"{FRAMES} frames entered; of their copies, 2 missing on a segment"), (
        found.text
    )
