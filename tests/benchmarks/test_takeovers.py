"""`benchmarks.takeovers` tells what it has found, also where a fault hangs or somebody ends it."""

import asyncio
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import takeovers
from benchmarks.soak import _table
from tests.rigs.takeovers import load as load_module
from tests.rigs.takeovers.load import Load, Outcome
from tests.rigs.takeovers.relays import Relay
from tests.rigs.takeovers.rig import Program, Rig
from tests.rigs.takeovers.stations import Notes
from tests.rigs.takeovers.trial import Trial, told
from tests.rigs.tmq import program


@pytest.mark.parametrize("error", [TimeoutError("calm before kill"), KeyboardInterrupt()])
def test_what_was_found_is_told_when_a_trial_breaks_off(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def trial(medium: str, envelopes: bool, faults: Sequence[str], *rest: object) -> None:
        outcomes = rest[-2]
        assert isinstance(outcomes, list)
        outcomes.append(Outcome(faults[0], sent=7, lost=3, counted={"stale": 2}))
        raise error

    monkeypatch.setattr(takeovers, "trial", trial)
    monkeypatch.setattr(sys, "argv", ["takeovers", "--setup", "can-plain", "--count", "2", "--json"])
    if isinstance(error, TimeoutError):
        assert takeovers.main() == 1
        assert "broke off after 1 of 2 faults: calm before kill" in capsys.readouterr().err
    else:
        with pytest.raises(KeyboardInterrupt):
            takeovers.main()
        (found,) = json.loads(capsys.readouterr().out)["TCP to CAN, plain"]
        assert (found["sent"], found["lost"], found["counted"]) == (7, 3, {"stale": 2})


def test_a_loss_is_told_with_the_counters_that_explain_it_and_what_none_explains() -> None:
    one = Outcome("freeze", sent=9, lost=5, counted={"stale": 2, "no peer": 1}, stood_ms=12.4)
    assert told(one) == "; counted: 2 stale, 1 no peer; unexplained: 2; the rig stood 12 ms"
    assert told(Outcome("freeze", sent=9, counted={"stale": 2})) == ""
    rows = [line.split(" | ") for line in _table(1, [one]) if line.startswith("| freeze")]
    assert rows == [["| freeze", "1", "9", "5", "2", "0", "0", "0 |"]]
    assert "| quiet | 0 | 0 |" in "\n".join(_table(1, [one]))
    (row,) = (line.split() for line in takeovers.table({"x": [one]}).splitlines() if "freeze" in line)
    assert row == ["x", "freeze", "1", "9", "5", "2", "0", "0", "0", "0", "0"]


class Soon(random.Random):
    """Chance that waits for nothing."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_partition_is_between_a_gateway_and_what_its_forwarding_depends_on(
    parallel: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled, healed = list[int](), list[int]()
    monkeypatch.setattr(Relay, "stall", lambda relay: stalled.append(relay.port))
    monkeypatch.setattr(Relay, "heal", lambda relay: healed.append(relay.port))
    rig = Rig(tmp_path, "can", True, parallel=parallel)
    active, other = (Program(tmp_path, name, state="active") for name in ("gw-a", "gw-b"))
    await Trial(rig, Load(Notes(1), Notes(2), 1), Soon()).partition(active, other)
    brokers = [relay.port for relay in rig.broker_relays["gw-a"]]
    assert stalled == healed == (rig.links["gw-a"].ports if parallel else brokers)


async def test_what_a_gateway_gave_up_before_it_was_killed_hides_nothing_that_it_gives_up_later(
    tmp_path: Path,
) -> None:
    def row(stale: int) -> dict[str, Any]:
        return {"hubs": [{"links": [{"dropped": {"stale": stale}, "rejected": {}}]}], "candidates": []}

    program = Program(tmp_path, "gw-a")
    program.note(row(300))
    before = program.drops
    await program.kill()
    program.note(row(6))
    assert program.drops - before == {"stale": 6}


async def test_a_broker_that_is_not_seen_to_start_is_in_reach_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else no later fault of the trial has a broker, and its losses are none of the gateways."""

    async def start(program: Program) -> None:
        raise TimeoutError(program.gateway)

    monkeypatch.setattr(Program, "start", start)
    rig = Rig(tmp_path, "can", True)
    gateways = [Program(tmp_path, name) for name in ("gw-a", "gw-b")]
    rig.programs = {one.gateway: one for one in (*gateways, Program(tmp_path, "br-1"))}
    try:
        with pytest.raises(TimeoutError):
            await rig.start_broker("br-1")
        for relays in rig.broker_relays.values():
            _, writer = await asyncio.open_connection("127.0.0.1", relays[0].port)
            writer.close()
    finally:
        await rig.close()
    gateways[0].brokers, gateways[1].brokers = ["up", "up"], ["up", "refused"]
    assert not rig.brokers_heard()
    gateways[1].brokers = ["up", "up"]
    assert rig.brokers_heard()


async def test_what_comes_back_or_twice_of_between_two_faults_counts_at_the_next_one() -> None:
    near, far = Notes(1), Notes(2)
    load = Load(near, far, 1)

    def sends(count: int) -> None:
        for source, sink in ((near, far), (far, near)):
            source.sent += [0.0] * count
            sink.heard |= {number: [0.0] for number in range(len(source.sent))}

    sends(2)
    first = load.mark()
    sends(2)
    outcomes = [await load.account("kill", first, 0.0)]
    sends(3)
    second = load.mark()
    sends(2)
    outcomes.append(await load.account("kill", second, 0.0))
    near.note(1, 1, 1.0)  # before the first fault, when all began
    for number in (3, 5, 8):
        near.note(1, number, 1.0)
        far.note(1, number, 1.0)
    load.recount()
    assert [(one.sent, one.strays, one.doubled) for one in outcomes] == [(4, 1, 1), (4, 2, 2)]


async def test_what_is_lost_between_two_faults_counts_at_the_next_one_until_it_comes() -> None:
    near, far = Notes(1), Notes(2)
    load = Load(near, far, 1)
    near.sent, far.heard = [0.0], {0: [0.0]}
    outcomes = [await load.account("kill", (0, 0, 0), 0.0)]
    near.sent += [0.0] * 3  # two before the next fault, of which one comes at once, and one late
    far.heard |= {1: [0.0], 3: [0.0]}
    outcomes.append(await load.account("kill", (3, 0, 0), 0.0))
    assert [(one.sent, one.lost, one.between, one.unexplained) for one in outcomes] == [
        (1, 0, 0, 0),
        (1, 1, 1, 1),
    ]
    far.heard[2] = [1.0]
    load.recount()
    assert [(one.lost, one.between) for one in outcomes] == [(0, 0), (0, 0)]


async def test_a_frame_under_way_at_a_fault_is_one_of_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of those between two faults, of which none may be lost."""
    monkeypatch.setattr(load_module, "CATCH_UP_S", 0.0)
    near, far = Notes(1, window_s=0.1), Notes(2)
    load = Load(near, far, 1)
    near.sent = [0.0, 9.94, 9.96, 10.5]
    far.heard = {0: [0.0], 1: [9.94]}
    outcome = await load.account("freeze", (3, 0, 0), 12.0, 10.0)
    assert (outcome.sent, outcome.given_up, outcome.lost, outcome.between) == (2, 2, 0, 0)


class Dead:
    """A client of 2015 one of whose subscribers takes no connection, `count` times."""

    alive = True

    def __init__(self, count: int) -> None:
        self.count, self.sent = count, list[bytes]()

    def publish(self, tokens: tuple[int, ...]) -> None: ...

    def subscribe(self, tokens: tuple[int, ...]) -> None: ...

    def send(self, tokens: tuple[int, ...], data: bytes) -> None:
        self.count -= 1
        if self.count >= 0:
            raise ConnectionRefusedError
        self.sent.append(data)

    def receive(self, tokens: tuple[int, ...]) -> bytes | None:
        return None

    def subscribers(self, tokens: tuple[int, ...]) -> int:
        return 1


def test_a_program_on_a_client_of_2015_sends_until_a_dead_gateway_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a number is lost that no gateway ever got, as soon as one is away for longer than its patience."""
    monkeypatch.setattr(program, "PAUSE_S", 0.0)
    monkeypatch.setattr(program, "say", lambda *words: None)
    dead = Dead(10_000)
    program.send(dead, 1, 7)
    (sent,) = dead.sent
    assert (program.BODY.unpack_from(sent)[0], program.BODY.unpack_from(sent)[2]) == (7, 10_000)
