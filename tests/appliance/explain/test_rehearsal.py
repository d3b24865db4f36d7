"""What `explain` says is what the running program does."""

import asyncio
import json
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.explain.hop import Hop
from appliance.explain.rehearsal import AGAIN, Rehearsal
from bus.hub import Hub
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from bus.wire.notation import pattern_of
from tests.helpers import ROOT
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from topologies.loading.loader import load, loads
from topologies.model import Topology
from topologies.resolved.resolve import resolve_all
from topologies.wiring.segments import wired

TEXT = """\
name: t
gateways: {{one: {{address: 127.0.0.1}}, two: {{address: 127.0.0.1}}}}
buses:
  p: {{on: one, listen: ["tcp://127.0.0.1:{0}", {{url: "tcp://127.0.0.1:{1}", trunk: true}}]}}
  q: {{on: one, listen: [{{url: "tcp://127.0.0.1:{2}", peers: [{{hear: a/b}}]}}]}}
  r: {{on: two, listen: ["tcp://127.0.0.1:{3}"], dial: {{url: "tcp://127.0.0.1:{1}", trunk: true}}}}
bridges:
  j: {{on: one, pattern: a, join: [{{bus: p, deny: {{in: a/x}}}}, {{bus: q, deny: {{out: a/y}}}}]}}
"""
HEARD = {"a/b": "qr", "a/x": "r", "a/y": "r", "a/c": "r", "z": "r"}
Out = pytest.CaptureFixture[str]


def frame(pattern: str) -> bytes:
    return pack(PUB, pattern_of(pattern), b"1")


def rehearsal(topology: Topology) -> Rehearsal:
    return Rehearsal(resolve_all(wired(topology)))


def reached(hops: list[Hop], ports: dict[str, int]) -> str:
    """Return the buses at whose address the frame goes out."""
    ends = {way.to for hop in hops for way in hop.exits if not way.stopped}
    return "".join(name for name, port in ports.items() if f"listen tcp://127.0.0.1:{port}" in ends)


async def test_the_same_frames_arrive_at_real_peers() -> None:
    ports = [free_port() for _ in range(4)]
    text = TEXT.format(*ports)
    at = {"q": ports[2], "r": ports[3]}
    start = f"bus p: listen tcp://127.0.0.1:{ports[0]}"
    said = {
        pattern: reached(list(rehearsal(loads(text)).run(frame(pattern), start)), at) for pattern in HEARD
    }
    running = [appliance_of(loads(text), gateway) for gateway in ("one", "two")]
    hubs = {name: Hub(name) for name in "pqr"}
    ears = {name: Ear(hub) for name, hub in hubs.items()}
    links = [make_link(f"tcp://127.0.0.1:{port}", "dial") for port in (ports[0], *at.values())]
    try:
        for one in running:
            one.open(asyncio.get_running_loop())
        for link, hub in zip(links, hubs.values(), strict=True):
            link.open(hub, asyncio.get_running_loop())
        await until(lambda: all(len(hub.pipes) == 2 for hub in hubs.values()))
        await until(lambda: running[1].links()[-1].state == "up")
        for pattern in HEARD:
            ears["p"].say(frame(pattern))
        ears["p"].say(frame("a/b"))  # the last one: all before it have arrived
        await until(lambda: all(ears[name].heard.count(frame("a/b")) == 2 for name in at))
    finally:
        for link in links:
            link.close()
        for one in running:
            one.close()
    heard = {pattern: "".join(name for name in at if frame(pattern) in ears[name].heard) for pattern in HEARD}
    assert said == heard == HEARD


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "t.yaml"
    made.write_text(TEXT.format(5001, 5002, 5003, 5004))
    return made


def explained(capsys: Out, *words: str) -> list[str]:
    assert main(["explain", *words]) in (0, 1)
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("a/x", "bridge j on one, by bus p: stopped: pattern"),
        ("a/y", "x bus q (stopped: pattern; deny out a/y)"),
        ("a/c", "x listen tcp://127.0.0.1:5003 (stopped: peers)"),
        ("a/b", "> listen tcp://127.0.0.1:5003"),
        ("z", "bridge j on one, by bus p: stopped: pattern"),
    ],
)
def test_what_stops_a_frame_is_named(pattern: str, line: str, file: Path, capsys: Out) -> None:
    assert line in explained(capsys, pattern, str(file), "--from", "5001")


def test_json_has_every_hop(file: Path, capsys: Out) -> None:
    (line,) = explained(capsys, "a/b", str(file), "--from", "5001", "--json")
    found = json.loads(line)
    assert found["from"] == "bus p: listen tcp://127.0.0.1:5001"
    assert [hop["part"] for hop in found["hops"]] == ["bus p", "bus r", "bridge j", "bus q"]


def test_the_links_are_listed_and_one_must_be_meant(file: Path, capsys: Out) -> None:
    assert "bus p: listen tcp://127.0.0.1:5001" in explained(capsys, "a", str(file))
    assert main(["explain", "a", str(file), "--from", "500"]) == 1
    assert "several links are like" in capsys.readouterr().err
    assert main(["explain", "a", str(file), "--from", "bus p: listen tcp://127.0.0.1:5009"]) == 1
    assert "did you mean" in capsys.readouterr().err


def test_a_plain_loop_ends_where_it_comes_round() -> None:
    text = "name: t\ngateways: {gw: {}}\nbuses:\n  p: {on: gw, listen: 'tcp://127.0.0.1:5001'}\n"
    text += "  q: {on: gw, listen: 'tcp://127.0.0.1:5002', dial: ['tcp://127.0.0.1:5001']}\n"
    text += "bridges: {j: {on: gw, join: [{bus: p}, {bus: q}]}}\n"
    hops = list(rehearsal(loads(text)).run(frame("a"), "bus p: listen tcp://127.0.0.1:5001"))
    assert any(hop.stopped == (AGAIN,) for hop in hops)
    assert len(hops) < 12


def test_a_wire_is_heard_by_all_on_it_and_by_what_stands_by() -> None:
    planned = rehearsal(load(ROOT / "topologies" / "cold-chain.yaml"))
    (start,) = [name for name in planned.starts() if "can can0" in name]
    first, *_ = planned.run(frame("fridge/temp"), start)
    assert (first.part, first.gateway, first.stopped) == ("bridge fridge", "gw-a", ())
    assert "bridge fridge on gw-b stands by" in first.remarks
    hops = list(planned.run(frame("pump"), start))
    assert [hop.stopped for hop in hops] == [("pattern",)]


@pytest.mark.parametrize("path", sorted(ROOT.glob("topologies/*.yaml")), ids=lambda path: path.stem)
def test_from_every_link_of_every_example(path: Path) -> None:
    for start in rehearsal(load(path)).starts():
        hops = list(rehearsal(load(path)).run(frame("fridge/temp"), start))
        assert hops
        assert len(hops) < 100


def test_a_plan_reads_no_key_and_no_certificate() -> None:
    text = "name: t\ngateways: {gw: {address: 10.0.0.1, node: 1}}\nkeys: /nowhere/k\n"
    text += (
        "buses: {p: {on: gw, listen: [{url: 'tcp://127.0.0.1:5001', trunk: true}, 'tcp://127.0.0.1:5002']}}\n"
    )
    text += "bridges: {j: {on: gw, join: [{bus: p}, {can: can0, trunk: true}]}}\n"
    hops = list(rehearsal(loads(text)).run(frame("a"), "bus p: listen tcp://127.0.0.1:5002"))
    assert [hop.part for hop in hops] == ["bus p", "bridge j"]


NAMED = """\
name: t
gateways: {gw: {}}
buses: {p: {on: gw, listen: "tcp://127.0.0.1:25601"}, q: {on: gw, listen: "tcp://127.0.0.1:25602"}}
bridges:
  j:
    on: gw
    join:
      - {bus: p, prefix: h, limits: [{pattern: h, frames_per_s: 5}]}
      - {bus: q, rename: {a: b}}
"""


@pytest.mark.parametrize(
    ("bus", "pattern", "words"),
    [
        ("p", "x/y", ["is here h/x/y", "> bus q (as h/x/y; rename a to b)"]),
        ("q", "h/c", ["is here h/c", "> bus p (as c; prefix h; at most 5 a second of h in)"]),
        ("q", "a", ["is here b", "x bus p (stopped: no name; prefix h"]),
        ("q", "b", ["by bus q: stopped: no name"]),
    ],
)
def test_each_name_of_a_frame_is_a_step(
    bus: str, pattern: str, words: list[str], tmp_path: Path, capsys: Out
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(NAMED)
    main(["explain", pattern, str(file), "--from", f"bus {bus}"])
    shown = capsys.readouterr().out
    assert [word for word in words if word not in shown] == [], shown


def test_a_hop_by_a_durable_trunk_says_for_whom_it_is_kept() -> None:
    text = """\
name: t
gateways: {a: {address: 10.0.0.1}, b: {address: 10.0.0.2}}
buses:
  p: {on: a, listen: [tcp://0.0.0.0:4, {url: "tcp://0.0.0.0:5", trunk: true}]}
  q: {on: b, listen: tcp://0.0.0.0:6, trunks: [{bus: p, durable: {directory: /j, pattern: x}}]}
"""
    plan, start = rehearsal(loads(text)), "bus q: listen tcp://0.0.0.0:6"
    told = {
        pattern: [
            word for hop in plan.run(frame(pattern), start) for way in hop.exits for word in way.remarks
        ]
        for pattern in ("x/y", "z")
    }
    assert "kept for a until acknowledged" in told["x/y"]
    assert not any("kept" in word for word in told["z"])
