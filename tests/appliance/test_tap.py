"""Taps of a topology: they record the traffic of buses and bridges by segment, equal to the ledgers."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from appliance.compose import Appliance
from bridges.bridge import Bridge
from bus.wire.batch import from_payloads
from bus.wire.envelope import take_apart
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from capture import names
from capture.files import days_directory
from capture.pcapng import Packet
from capture.reader import read
from capture.schema import META_TOPOLOGY, Direction, Kind
from devices.child import settle
from devices.tap.device import TapSpec
from tests.devices.tap.tap_support import files_in, member
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.checks.checker import check
from topologies.loading.loader import loads

TEXT = """\
name: two
gateways: {{here: {{address: 127.0.0.1}}}}
buses:
  one: {{on: here, listen: ["tcp://127.0.0.1:{ports[0]}"]}}
  two: {{on: here, listen: ["tcp://127.0.0.1:{ports[1]}"]}}
bridges:
  joint: {{on: here, pattern: [a], join: [{{bus: one}}, {{bus: two}}]}}
devices:
  recorder: {{on: here, tap: {tap}, directory: "{directory}", yields: false{more}}}
"""
GOOD = [pack(PUB, Pattern("a", n), b"%d" % n) for n in range(20)]
OWN = "an event of the appliance"
OTHER = [pack(PUB, Pattern("b", n)) for n in range(5)]


def written(directory: Path, tap: str = "[one, two, joint]", more: str = "") -> str:
    ports = free_port(), free_port()
    return TEXT.format(ports=ports, tap=tap, directory=directory, more=more)


async def exchanged(appliance: Appliance) -> None:
    """Send everything from one member, until the member on the other bus has all that crosses."""
    one, two = (str(appliance.topology.buses[name].listen[0].url) for name in ("one", "two"))
    async with member(one) as (hub, _), member(two) as (_, ear):
        hubs = {part.name: part.hub for part in appliance.parts.values()}
        await until(lambda: len(hubs["one"].pipes) == len(hubs["two"].pipes) == 2)
        hub.publish(from_payloads(GOOD + OTHER))
        await until(lambda: len(ear.messages) == len(GOOD))


def lines(appliance: Appliance, text: str) -> list[str]:
    return [change.line() for change in reloaded(appliance, loads(text, "t.yaml"))]


async def captured(text: str) -> Counter[tuple[int, str, str, int, str]]:
    """Count messages by kind, hub, segment, direction and, for ledgers, word."""
    appliance = appliance_of(loads(text, "t.yaml"), "here")
    appliance.open(asyncio.get_running_loop())
    try:
        await exchanged(appliance)
    finally:
        appliance.close()
    assert await asyncio.to_thread(settle, 50)
    found = Counter[tuple[int, str, str, int, str]]()
    spec = appliance.topology.devices["recorder"]
    assert isinstance(spec, TapSpec)
    for row in read(Path(spec.directory)):
        found[row.kind, row.hub, row.bus, row.dir, word_of(row)] += row.messages
    return found


def word_of(row: Packet) -> str:
    return row.message.decode() if row.kind else "" if row.peer else OWN


async def test_frames_by_segment_and_direction_agree_with_the_ledgers(tmp_path: Path) -> None:
    found = await captured(written(tmp_path))
    rx, tx, every, good = Direction.RX, Direction.TX, len(GOOD + OTHER), len(GOOD)
    frames = {key[1:4]: count for key, count in found.items() if key[0] == Kind.FRAME and not key[4]}
    assert frames == {
        ("bus one", "bus one", rx): every,
        ("bus two", "bus two", tx): good,
        ("bridge joint", "bus one", rx): good,
        ("bridge joint", "bus two", tx): good,
    }
    assert not found[Kind.FRAME, "bus one", "bus one", tx, OWN]
    assert found[Kind.LEDGER, "bridge joint", "bus one", rx, "pattern"] == len(OTHER)
    assert found[Kind.LEDGER, "bridge joint", "bus one", rx, "received"] == good
    assert found[Kind.LEDGER, "bridge joint", "bus two", tx, "sent"] == good
    assert found[Kind.LEDGER, "bus one", "bus one", rx, "received"] == every


async def test_a_tap_leaves_the_names_of_its_topology_and_goes_on_when_they_change(tmp_path: Path) -> None:
    text = written(tmp_path)
    appliance = appliance_of(loads(f"{text}names: [fridge]", "t.yaml"), "here")
    appliance.open(asyncio.get_running_loop())
    try:
        changed = reloaded(appliance, loads(f"{text}names: [temp, fridge, door]", "t.yaml"))
        assert [change.line() for change in changed] == ["added names: temp, door"]
    finally:
        appliance.close()
    assert await asyncio.to_thread(settle, 50)
    assert names.beside(days_directory(tmp_path)) == ["a", "fridge", "temp", "door"]


async def test_a_capture_says_what_the_filters_of_its_bridges_are(tmp_path: Path) -> None:
    text = written(tmp_path)
    appliance = appliance_of(loads(text, "t.yaml"), "here")
    appliance.open(asyncio.get_running_loop())
    try:
        await exchanged(appliance)
        changed = text.replace("{bus: two}]", "{bus: two, deny: {out: [a/99]}}]")
        assert lines(appliance, changed) == ["changed bridge joint: bus two: deny"]
        await exchanged(appliance)
    finally:
        appliance.close()
    assert await asyncio.to_thread(settle, 50)
    found = [json.loads(pq.read_schema(path).metadata[META_TOPOLOGY.encode()]) for path in files_in(tmp_path)]
    bridge = {"gateways": ["here"], "pattern": list(Pattern("a"))}
    one, two = {"segment": "bus one"}, {"segment": "bus two"}
    denying = two | {"deny_out": [list(Pattern("a", 99))]}
    assert [topology["bridge joint"] for topology in found] == [
        {**bridge, "sides": [one, two]}, {**bridge, "sides": [one, denying]}
    ]  # fmt: skip
    assert found[0]["bus one"] == {"gateways": ["here"]}


async def test_one_tap_and_a_pattern(tmp_path: Path) -> None:
    found = await captured(written(tmp_path, "one", ", pattern: [b]"))
    frames = {key[1:4]: count for key, count in found.items() if key[0] == Kind.FRAME and not key[4]}
    assert frames == {("bus one", "bus one", Direction.RX): len(OTHER)}


async def test_a_tap_added_at_run_time_sees_a_running_bridge(tmp_path: Path) -> None:
    text = written(tmp_path)
    appliance = appliance_of(loads(text[: text.index("devices:")], "t.yaml"), "here")
    appliance.open(asyncio.get_running_loop())
    try:
        await exchanged(appliance)
        assert lines(appliance, text) == ["added device recorder"]
        assert lines(appliance, text) == []
        await exchanged(appliance)
        assert lines(appliance, text[: text.index("devices:")]) == ["removed device recorder"]
        await exchanged(appliance)
    finally:
        appliance.close()
    assert await asyncio.to_thread(settle, 50)
    found = Counter((row.hub, row.bus, row.dir) for row in read(tmp_path) if row.kind == Kind.FRAME)
    assert found["bridge joint", "bus two", Direction.TX] == len(GOOD)
    assert found["bus one", "bus one", Direction.RX] == len(GOOD + OTHER)


async def test_two_taps_record_one_bridge_and_neither_is_called_after_its_end(tmp_path: Path) -> None:
    text = written(tmp_path / "first")
    second = text + text[text.index("  recorder:") :].replace("recorder:", "second:").replace(
        "first", "second"
    )
    appliance = appliance_of(loads(second, "t.yaml"), "here")
    appliance.open(asyncio.get_running_loop())
    bridge = appliance.parts["bridge joint"].hub
    assert isinstance(bridge, Bridge)
    try:
        await exchanged(appliance)
        assert lines(appliance, text) == ["removed device second"]
        assert len(bridge.sent_taps) == 1
    finally:
        appliance.close()
    assert not bridge.sent_taps
    assert await asyncio.to_thread(settle, 50)
    for directory in (tmp_path / "first", tmp_path / "second"):
        found = Counter((row.hub, row.bus, row.dir) for row in read(directory) if row.kind == Kind.FRAME)
        assert found["bridge joint", "bus two", Direction.TX] == len(GOOD)


async def test_with_only_a_tap_goes_with_what_it_taps(tmp_path: Path) -> None:
    topology = loads(written(tmp_path / "capture"), "t.yaml")
    parts = appliance_of(topology, "here", ["two"], tmp_path).parts
    assert list(parts) == ["device recorder", "bus two"]


def test_a_tap_taps_what_runs_where_it_runs(tmp_path: Path) -> None:
    text = written(tmp_path).replace("{here: {address: 127.0.0.1}}", "{here: {}, far: {}}")
    text = text.replace("recorder: {on: here", "recorder: {on: far")
    found = [finding.text for finding in check(loads(text, "t.yaml"))]
    assert "one does not run on far, where its tap recorder runs" in found


OPAQUE = """\
name: opaque
gateways: {{here: {{address: 127.0.0.1}}}}
buses:
  one: {{on: here, listen: ["tcp://127.0.0.1:{0}", {{url: "tcp://127.0.0.1:{1}", trunk: true}}]}}
devices:
  recorder: {{on: here, tap: one, directory: "{2}", yields: false}}
"""


async def test_messages_that_are_no_frames_are_recorded_byte_for_byte(tmp_path: Path) -> None:
    """At a bus that has a trunk with the envelopes that it gave them, as frames are."""
    appliance = appliance_of(loads(OPAQUE.format(free_port(), free_port(), tmp_path), "t.yaml"), "here")
    messages = [b"hello", GOOD[0], b"", bytes(1 << 20)]
    appliance.open(asyncio.get_running_loop())
    try:
        async with member(str(appliance.topology.buses["one"].listen[0].url)) as (hub, _):
            (bus,) = (part.hub for part in appliance.parts.values() if part.kind == "bus")
            await until(lambda: len(bus.pipes) == 1)
            hub.publish(from_payloads(messages))
            await until(lambda: bus.pipes[0].stats.received == len(messages))
    finally:
        appliance.close()
    assert await asyncio.to_thread(settle, 50)
    found = [take_apart(row.message) for row in read(tmp_path) if row.kind == Kind.FRAME]
    assert [parts.content for parts in found] == messages
    assert all(parts.envelope for parts in found)


async def test_a_tap_follows_a_bus_to_another_hub_and_a_bridge_to_other_sides(tmp_path: Path) -> None:
    text, rounds = written(tmp_path / "capture"), 5
    trunk = f'{{url: "tcp://127.0.0.1:{free_port()}", trunk: true}}'
    texts = [
        text,
        text.replace('"]}\n  two', f'", {trunk}]}}\n  two'),
        text.replace("{bus: two}]", "{bus: two, deny: [zz]}, {url: 'tcp://127.0.0.1:9'}]"),
        text.replace("join: [{bus: one}, {bus: two}]", "join: [{bus: two}, {bus: one}]"),
        text.replace("yields: false", "yields: false, file_s: 7"),  # takes another recorder
    ]
    appliance = appliance_of(loads(text, "t.yaml"), "here")
    appliance.open(asyncio.get_running_loop())
    try:
        for one in texts:
            lines(appliance, one)
            await exchanged(appliance)
    finally:
        appliance.close()
    assert await asyncio.to_thread(settle, 50)
    found = Counter[tuple[int, str, str, int, str]]()
    for row in read(tmp_path / "capture"):
        found[row.kind, row.hub, row.bus, row.dir, word_of(row)] += row.messages
    every, good = rounds * len(GOOD + OTHER), rounds * len(GOOD)
    assert found[Kind.FRAME, "bus one", "bus one", Direction.RX, ""] == every
    assert found[Kind.FRAME, "bridge joint", "bus one", Direction.RX, ""] == good
    assert found[Kind.FRAME, "bridge joint", "bus two", Direction.TX, ""] == good
    assert found[Kind.LEDGER, "bus one", "bus one", Direction.RX, "received"] == every
    assert found[Kind.LEDGER, "bridge joint", "bus two", Direction.TX, "sent"] == good
