"""Sides that write to devices while no broker tells which gateway may: all protocols that send."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.parts.bridge import BridgePart
from bridges.protocols import PROTOCOLS
from bridges.protocols.protocol import Protocol
from bus.wire.frame import PUB, pack
from bus.wire.notation import pattern_of
from tests.bridges.support import RecordingPipe, recorder, say
from tests.helpers import ROOT
from tests.helpers.appliances import appliance_of
from topologies.loading.loader import load

UART, CAN = "uart: {port: /dev/ttyX}", "can: {channel: can7}"
SENDING = {
    "lines": (UART, "lines: {receive: a, send: b", "b"),
    "nmea": (UART, "nmea: {root: a, send: b", "b"),
    "jsonl": (UART, "jsonl: {root: a, send: b", "b"),
    "slip": (UART, "slip: {receive: a, send: b", "b"),
    "bytes": (UART, "bytes: {receive: a, send: b", "b"),
    "xbee": (UART, "xbee: {root: a, send: all", "a/all"),
    "raw": (CAN, "raw: {root: a, receive: [1], send: [2]", "a/0x2"),
    "cannelloni": (
        "udp: {host: 127.0.0.1, port: 20000}",
        "cannelloni: {root: a, receive: [1], send: [2]",
        "a/0x2",
    ),
    "dbc": (CAN, "dbc: {file: engine.dbc, root: a, send: [Command]", "a/Command"),
}
ASKING = {"modbus", "queries", "registers"}  # tests/appliance/test_one_master.py, test_one_asks.py
TEXT = """\
name: doubt
gateways: {{g: {{address: 127.0.0.1}}, h: {{address: 127.0.0.1}}}}
brokers: {{x: {{on: g, listen: "tcp://127.0.0.1:19999"}}}}
buses: {{road: {{on: g}}}}
bridges:
  b:
    on: {on}
    join:
      - bus: road
      - {medium}
        protocol: {{{protocol}{more}}}}}
"""


def part_of(
    folder: Path, name: str, more: str = "", on: str = "[g, h]", receive_all: str = "", renamed: str = ""
) -> BridgePart:
    """Return the part of gateway g. `receive_all`: the set that is sent, and all others come in."""
    medium, protocol, _ = SENDING[name]
    if receive_all:
        protocol = f"{name}: {{root: a, send: {receive_all}"
    shutil.copy(ROOT / "examples" / "engine" / "engine.dbc", folder)
    text = TEXT.format(on=on, medium=medium, protocol=protocol, more=more)
    (folder / "t.yaml").write_text(text + renamed + "\n")
    part = appliance_of(load(folder / "t.yaml"), "g").parts["bridge b"]
    assert isinstance(part, BridgePart)
    return part


def protocols() -> Iterator[tuple[str, type[Protocol]]]:
    return ((key, kind) for key, kind in PROTOCOLS.known() if kind.items)


def test_the_table_has_every_protocol() -> None:
    assert {key for key, _ in protocols()} >= set(SENDING) | ASKING
    assert [key for key, kind in protocols() if kind.asks] == sorted(ASKING, key=list(PROTOCOLS.all()).index)


class Ends:
    """The bus and the devices at the ends of a bridge that forwards; `doubt`: no broker confirms it."""

    def __init__(self, part: BridgePart, name: str) -> None:
        self.doubt = False
        self.frame = pack(PUB, pattern_of(SENDING[name][2]), b"1")
        self.gate = part.hub.stand_by(lambda _: True, in_doubt=lambda: self.doubt)
        self.sides = [leg.side for leg in part.legs]
        self.bus, self.device = (recorder(side) for side in self.sides)
        self.gate.resume()

    def command(self) -> None:
        say(self.sides[0], self.bus, self.frame)


@pytest.mark.parametrize("name", SENDING)
def test_in_doubt_nothing_is_written_and_afterwards_it_goes_on(name: str, tmp_path: Path) -> None:
    ends = Ends(part_of(tmp_path, name), name)
    heard: RecordingPipe = ends.device
    ends.command()
    assert len(heard.messages) == 1
    ends.doubt = True
    ends.command()
    port = ends.sides[1].ports[0]
    assert len(heard.messages) == 1
    assert port.stats.dropped == {"in doubt": 1}
    assert not port.stats.balance()
    ends.doubt = False
    ends.command()
    assert len(heard.messages) == 2


@pytest.mark.parametrize("name", SENDING)
def test_it_goes_on_if_the_topology_says_so(name: str, tmp_path: Path) -> None:
    ends = Ends(part_of(tmp_path, name, ", on_doubt: go on"), name)
    ends.doubt = True
    ends.command()
    assert len(ends.device.messages) == 1


@pytest.mark.parametrize("name", SENDING)
def test_a_bridge_of_one_gateway_knows_no_doubt(name: str, tmp_path: Path) -> None:
    assert part_of(tmp_path, name, on="g").hub.gate is None


def test_what_waits_when_the_doubt_begins_is_not_sent_when_it_goes_on_alone(tmp_path: Path) -> None:
    ends = Ends(part_of(tmp_path, "raw"), "raw")
    purged = list[str]()
    ends.device.purge = lambda reason: purged.append(reason) or []  # type: ignore[func-returns-value,method-assign]
    ends.doubt = True
    ends.gate.pause()
    ends.gate.resume()
    assert purged == ["in doubt"]


@pytest.mark.parametrize(("sent", "theirs"), [("[2]", "a/0x2"), ('["0x100x-0x1fffffx"]', "a/0x101x")])
def test_in_doubt_what_another_gateway_sends_is_no_news(sent: str, theirs: str, tmp_path: Path) -> None:
    ends = Ends(part_of(tmp_path, "raw", receive_all=sent), "raw")
    ends.doubt = True
    another, news = (pack(PUB, pattern_of(one), b"1") for one in (theirs, "a/0x3"))
    say(ends.sides[1], ends.device, another, news)
    assert ends.bus.messages == [news]
    assert ends.sides[1].ports[0].stats.rejected == {"another sender": 1}


@pytest.mark.parametrize("renamed", ["", "        prefix: x"])
def test_a_standby_judges_large_sets_of_identifiers_one_by_one(renamed: str, tmp_path: Path) -> None:
    side = part_of(tmp_path, "raw", receive_all='["0x1000x-0x1ffffx"]', renamed=renamed).legs[1].side
    start = "x/" if renamed else ""

    def judged(one: str) -> tuple[bool, bool]:
        found = pack(PUB, pattern_of(start + one), b"1")
        return side.admits(found), side.lets_out(found)

    assert judged("a/0x1234x") == (False, True)
    assert judged("a/0x1234") == judged("a/0x20000x") == (True, False)
    assert judged("b/0x1234x") == judged("a") == (False, False)


@pytest.mark.parametrize(
    ("medium", "shed", "ms"),
    [("", "", None), (", age_ms: 80", "", 80), ("", "age_ms: 70", 70), (", age_ms: 80", "age_ms: 90", 90)],
)
def test_a_side_of_tmq_replays_what_is_younger_than_its_ages(
    medium: str, shed: str, ms: int | None, tmp_path: Path
) -> None:
    more = f"\n        shed: {{policy: oldest, {shed}}}" if shed else ""
    text = TEXT.partition("\n        protocol")[0] + "{more}"
    made = text.format(on="[g, h]", medium=f"can: {{channel: can7, node: 5{medium}}}", more=more + "\n")
    (tmp_path / "t.yaml").write_text(made)
    part = appliance_of(load(tmp_path / "t.yaml"), "g").parts["bridge b"]
    assert isinstance(part, BridgePart)
    assert [leg.side.replay_s for leg in part.legs] == [None, None if ms is None else ms / 1000]
