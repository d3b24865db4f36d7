"""Alarms of two gateways in virtual time: people are told once, over takeovers and restarts."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from appliance.alarms.announcement import PATTERN
from appliance.alarms.book import SUBJECTS
from appliance.alarms.keeping import MemoryKeeper
from appliance.compose import Appliance
from appliance.simulated.plant import SimulatedPlant
from appliance.status.shape import fits
from appliance.status.snapshot import snapshot
from bus.keys import new_key
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.helpers import ROOT
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired

FILE = ROOT / "examples/alarms/plant.yaml"


def made(more: str = "") -> SimulatedPlant:
    """Return the plant of the example, in which the gateways have settled."""
    ports = {name: str(free_port()) for name in ("HALL_PORT", "HALL_TRUNK_PORT", "OFFICE_PORT")}
    found = SimulatedPlant(loads(FILE.read_text() + more, variables=ports))
    found.wait(8)
    return found


@pytest.fixture
def plant() -> Iterator[SimulatedPlant]:
    """The plant of the example."""
    with closing(made()) as found:
        yield found


def told(plant: SimulatedPlant, alarm: str = "warm") -> list[tuple[str, str]]:
    """Return who told people of which state."""
    return [(one.gateway, one.notice.state) for one in plant.told if one.notice.alarm == alarm]


def stage(plant: SimulatedPlant, gateway: str, alarm: str = "warm") -> str:
    rows = snapshot(plant.gateways[gateway].view())["alarms"]
    return str(next(row["stage"] for row in rows if row["alarm"] == alarm))


def test_a_takeover_while_it_is_raised_and_one_while_it_is_acknowledged_tell_nobody_again(
    plant: SimulatedPlant,
) -> None:
    plant.send("office", "fridge/1", b"9")
    plant.wait(5)
    plant.fail("gw-a")
    plant.wait(15)
    assert stage(plant, "gw-b") == "raised"
    assert plant.gateways["gw-b"].alarms.acknowledge("warm", "", "ann")
    plant.restart("gw-a")  # it knows of a raised one only
    plant.wait(10)
    assert stage(plant, "gw-a") == stage(plant, "gw-b") == "acknowledged"
    plant.fail("gw-a")
    plant.wait(15)
    assert told(plant) == [("gw-a", "raised")]
    plant.send("office", "fridge/1", b"7.5")
    plant.wait(5)
    assert stage(plant, "gw-b") == "acknowledged"  # within the hysteresis
    plant.send("office", "fridge/1", b"7")
    plant.wait(5)
    assert told(plant) == [("gw-a", "raised"), ("gw-b", "cleared")]


def test_a_restart_of_all_gateways_loses_no_state(plant: SimulatedPlant) -> None:
    plant.send("hall", "fridge/1", b"9")
    plant.wait(5)
    plant.stop("gw-b")
    plant.gateways["gw-a"].alarms.acknowledge("warm", "", "ann")
    plant.stop("gw-a")  # at once
    for gateway in ("gw-a", "gw-b"):
        plant.restart(gateway)
    plant.wait(20)
    assert stage(plant, "gw-a") == stage(plant, "gw-b") == "acknowledged"
    plant.send("hall", "fridge/1", b"6")
    plant.wait(5)
    assert told(plant) == [("gw-a", "raised"), ("gw-a", "cleared")]


def test_one_that_comes_back_listens_before_it_leads(plant: SimulatedPlant) -> None:
    plant.fail("gw-a")
    plant.wait(10)
    plant.send("office", "fridge/1", b"9")
    plant.wait(5)
    plant.restart("gw-a")
    for _ in range(20):
        plant.send("office", "fridge/1", b"9")
        plant.wait(0.5)
    assert stage(plant, "gw-a") == "raised"
    assert told(plant) == [("gw-b", "raised")]


def test_silence_and_a_link_are_told_of_by_who_sees_them(plant: SimulatedPlant) -> None:
    plant.wait(60)
    assert told(plant, "silent") == [("gw-a", "raised")]
    plant.fail("gw-a")
    plant.wait(20)
    assert told(plant, "trunk") == [("gw-b", "raised")]
    plant.restart("gw-a")
    plant.wait(20)
    assert told(plant, "trunk") == [("gw-b", "raised"), ("gw-b", "cleared")]
    assert told(plant, "silent") == [("gw-a", "raised")]


def test_it_is_an_event_a_reason_of_the_health_and_a_row_of_the_status(plant: SimulatedPlant) -> None:
    plant.send("hall", "fridge/1", b"9")
    plant.wait(5)
    plant.gateways["gw-a"].alarms.acknowledge("warm", "", "ann")
    plant.wait(3)
    status = snapshot(plant.gateways["gw-a"].view())
    assert fits(status)
    causes = [event["cause"] for event in status["events"] if event["kind"] == "alarm"]
    assert [cause.split(": ")[1] for cause in causes] == ["raised", "acknowledged by ann"]
    assert status["health"]["word"] == "trouble"
    assert "acknowledged by ann" in status["health"]["line"]
    assert {row["name"] for hub in status["hubs"] for row in hub["links"]} >= {"log", "plain/alarms"}
    assert all(row["balance"] == 0 for hub in status["hubs"] for row in hub["links"])


def test_what_is_cleared_is_told_of_as_what_was(plant: SimulatedPlant) -> None:
    for value in (b"9", b"5"):
        plant.send("hall", "fridge/1", value)
        plant.wait(5)
    events = snapshot(plant.gateways["gw-a"].view())["events"]
    causes = [event["cause"] for event in events if event["kind"] == "alarm"]
    assert "cleared: was: too warm" in causes[-1]
    assert [one.notice.line() for one in plant.told if ": was: too warm" in one.notice.line()]


def test_what_is_acknowledged_must_be_there(plant: SimulatedPlant) -> None:
    with pytest.raises(KeyError):
        plant.gateways["gw-a"].alarms.acknowledge("warmth", "", "ann")
    assert plant.gateways["gw-a"].alarms.acknowledge("warm", "", "ann") == []


def test_frames_of_the_product_and_what_is_no_number_raise_nothing(plant: SimulatedPlant) -> None:
    for data in (b"", b"warm", b"nan", b"inf", b"infinity", b"9_9", b"9" * 65, b"\xff"):
        plant.send("hall", "fridge/1", data)
    plant.wait(3)
    assert told(plant) == []


def test_with_keys_nobody_else_can_acknowledge_or_stand_in_for_a_gateway(tmp_path: Path) -> None:
    new_key(str(tmp_path / "key"))
    with closing(made(f"keys: {tmp_path / 'key'}\n")) as plant:
        plant.send("hall", "fridge/1", b"9")
        plant.wait(5)
        said = [message for message in plant.heard("office") if message.tokens[:2] == PATTERN]
        presence = next(one for one in said if len(one.tokens) == 2 and b'"gw-a"' in one.data)
        raised = next(one for one in said if len(one.tokens) > 3)
        forged = raised.data.replace(b"raised", b"cleared")
        for data in (forged, forged.partition(b',"tag"')[0] + b"}"):
            plant.send("office", "/".join(map(str, raised.tokens)), data)
        plant.fail("gw-a")
        for _ in range(10):  # somebody plays gw-a
            plant.send("office", "buscoupler/alarm", presence.data)
            plant.wait(1)
        assert stage(plant, "gw-b") == "raised"
        plant.send("office", "fridge/1", b"5")
        plant.wait(2)
        assert told(plant) == [("gw-a", "raised"), ("gw-b", "cleared")]
        hubs = snapshot(plant.gateways["gw-b"].view())["hubs"]
        (ears,) = [row for hub in hubs for row in hub["links"] if row["name"] == "plain/alarms"]
        assert ears["rejected"] == {"forged": 1, "unsigned": 1, "replayed": 10}


def test_forged_announcements_do_not_end_the_watch(plant: SimulatedPlant) -> None:
    plant.send("hall", "fridge/1", b"9")
    plant.wait(1)
    state = {"gateway": "x", "number": 1, "stage": "raised", "of": "x", "since_ns": 1, "cause": "", "by": "x"}
    for number in range(20):
        told_by = [f"{number}-{place}-" + "z" * 60 for place in range(16)]
        plant.send("hall", "buscoupler/alarm/warm/fridge/1", json.dumps({**state, "told": told_by}).encode())
    plant.wait(3)
    plant.send("hall", "fridge/1", b"5")
    plant.wait(3)
    assert stage(plant, "gw-a") == "cleared"


def test_a_defect_in_one_look_does_not_end_the_next(
    plant: SimulatedPlant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(plant.gateways["gw-a"].alarms, "concerns", None)
        plant.wait(2)
    assert "Rounds._begin" in caplog.text
    plant.send("hall", "fridge/1", b"9")
    plant.wait(3)
    assert stage(plant, "gw-a") == "raised"


RELOADED = """\
name: reloaded
gateways: {gw: {status: {serve: false}}}
buses: {hall: {on: gw}}
alarms:
  silent: {bus: hall, pattern: fridge, missing_s: 0.1}
"""
MORE = """\
  loud: {bus: hall, pattern: fridge, above: 1, notify: o}
outlets: {o: {command: [/bin/true]}}
"""


async def test_a_reload_keeps_the_states_of_alarms_that_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one = appliance_of(loads(RELOADED + MORE, "t.yaml"), "gw")
    one.open(asyncio.get_running_loop())
    try:
        await until(lambda: one.alarms.records()[0]["stage"] == "raised")
        for text, lines in (
            (RELOADED, ["removed alarm loud", "removed outlet o"]),
            (
                RELOADED.replace("0.1", "0.2") + MORE,
                ["added alarm loud", "added outlet o", "changed alarm silent"],
            ),
        ):
            changes = reloaded(one, loads(text, "t.yaml"))
            assert [change.line() for change in changes] == lines
            silent, *others = one.alarms.records()
            assert (silent["stage"], silent["number"]) == ("raised", 1)
            assert len(others) == len(one.alarms.rows) == text.count("loud")
    finally:
        one.close()


async def test_the_first_alarms_of_a_reload_have_the_states_from_before_a_restart() -> None:
    text = f"name: x\ngateways: {{gw: {{}}}}\nbuses: {{b: {{on: gw, listen: 'tcp://127.0.0.1:{free_port()}'}}}}\n"
    alarm = "alarms: {warm: {bus: b, pattern: [t], above: 3}}\n"
    keeper, loop = MemoryKeeper(), asyncio.get_running_loop()
    stages = list[str]()
    for first in (text + alarm, text):
        appliance = Appliance(resolve(wired(loads(first)), "gw"), keeper=keeper)
        appliance.open(loop)
        reloaded(appliance, loads(text + alarm))
        if not stages:
            appliance.parts["bus b"].hub.publish(from_payloads([pack(PUB, Pattern("t"), b"9")]))
        await until(lambda one=appliance: snapshot(one.view())["alarms"][0]["stage"] == "raised")  # type: ignore[misc]
        stages += [row["stage"] for row in snapshot(appliance.view())["alarms"]]
        appliance.close()
    assert stages == ["raised"] * 2


async def test_states_that_a_disk_refuses_are_kept_when_it_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "full"))
    one = appliance_of(loads(RELOADED, "t.yaml"), "gw")
    one.open(asyncio.get_running_loop())
    (tmp_path / "full").write_text("no directory")
    try:
        await until(lambda: any("a restart would lose them" in why.text for why in one.alarms.concerns()))
        (tmp_path / "full").unlink()  # no state changes from here on
        await until(lambda: all("a restart would lose them" not in why.text for why in one.alarms.concerns()))
        (kept,) = (tmp_path / "full").rglob("alarms-*.json")
        (row,) = json.loads(kept.read_bytes())["alarms"]["silent"]
        assert row["stage"] == "raised"
    finally:
        one.close()


ADDED = """\
name: added
gateways: {gw-a: {status: {serve: false}}, gw-b: {status: {serve: false}}}
buses:
  hall: {on: gw-a, listen: [{url: "tcp://127.0.0.1:${PORT}", trunk: true}]}
  office: {on: gw-b, trunks: hall}
alarms:
  own: {bus: office, pattern: fridge, above: 100, notify: o}
outlets: {o: {command: [/bin/true]}}
"""
WARM = "  warm: {bus: [hall, office], pattern: fridge, above: 8, notify: o}\n"


def test_an_alarm_that_a_reload_adds_is_told_once_though_the_gateways_reload_one_after_the_other() -> None:
    port = {"PORT": str(free_port())}
    with closing(SimulatedPlant(loads(ADDED, variables=port))) as plant:
        plant.wait(10)
        for name in ("gw-a", "gw-b"):
            reloaded(plant.gateways[name], loads(ADDED.replace("outlets", WARM + "outlets"), variables=port))
            for _ in range(10):
                plant.send("hall", "fridge", b"9")
                plant.wait(0.5)
        plant.wait(10)
        assert stage(plant, "gw-a") == stage(plant, "gw-b") == "raised"
        assert told(plant) == [("gw-a", "raised")]


async def test_an_alarm_of_a_link_that_a_reload_removes_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    urls = [f'"tcp://127.0.0.1:{free_port()}"' for _ in range(2)]
    text = (
        "name: linked\ngateways: {gw: {status: {serve: false}}}\n"
        "buses: {hall: {on: gw, dial: [DIALS]}}\nalarms: {away: {link: hall, missing_s: 0.1}}\n"
    )
    one = appliance_of(loads(text.replace("DIALS", ", ".join(urls)), "t.yaml"), "gw")
    one.open(asyncio.get_running_loop())
    try:
        await until(lambda: [row["stage"] for row in one.alarms.records()] == ["raised", "raised"])
        reloaded(one, loads(text.replace("DIALS", urls[0]), "t.yaml"))
        await until(lambda: [row["stage"] for row in one.alarms.records()] == ["raised", "cleared"])
    finally:
        one.close()


@pytest.mark.parametrize(
    ("edit", "rest"),
    [
        (("pattern: fridge, above: 8", "pattern: oven, above: 8"), {"warm": "cleared"}),
        (("  warm:", "  hot:"), {"hot": "normal"}),
    ],
    ids=["another pattern", "another name"],
)
def test_people_hear_the_end_of_an_alarm_that_a_reload_takes_away(
    edit: tuple[str, str], rest: dict[str, str]
) -> None:
    port = {"PORT": str(free_port())}
    before = ADDED.replace("outlets", WARM + "outlets")
    with closing(SimulatedPlant(loads(before, variables=port))) as plant:
        plant.wait(10)
        plant.send("hall", "fridge", b"9")
        plant.wait(5)
        for name in ("gw-a", "gw-b"):
            reloaded(plant.gateways[name], loads(before.replace(*edit), variables=port))
            plant.wait(5)
        plant.wait(10)
        assert told(plant) == [("gw-a", "raised"), ("gw-a", "cleared")]
        for name in ("gw-a", "gw-b"):
            assert {alarm: stage(plant, name, alarm) for alarm in rest} == rest
            assert all(not why.source.startswith("alarm") for why in plant.gateways[name].alarms.concerns())


def test_patterns_that_are_too_many_for_an_alarm_are_in_the_verdict(plant: SimulatedPlant) -> None:
    for number in range(SUBJECTS + 1):
        plant.send("office", f"fridge/{number}", b"1")
    plant.wait(3)
    (text,) = (one.text for one in plant.gateways["gw-b"].alarms.concerns())
    assert text == f"more than {SUBJECTS} patterns match it: it watches so many, and not the others"
