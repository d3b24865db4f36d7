"""Gateways of a plant in virtual time hear each other over trunks and brokers, without a page."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from appliance.simulated.plant import SimulatedPlant
from appliance.status.overlay import own_marks, shown_marks
from appliance.status.snapshot import snapshot
from appliance.web.metrics import render
from bus.keys import new_key
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

CHAIN = """\
name: t
gateways: {{a: {{}}, b: {{}}, c: {{}}}}
buses:
  x: {{on: a, listen: [{{url: "tcp://127.0.0.1:{0}", trunk: true}}]}}
  y: {{on: b, trunks: x, listen: [{{url: "tcp://127.0.0.1:{1}", trunk: true}}]}}
  z: {{on: c, trunks: y}}
"""
BROKER = """\
name: t
gateways: {{a: {{node: 1}}, b: {{node: 2}}, c: {{node: 3}}}}
brokers: {{main: {{on: c, listen: "tcp://127.0.0.1:{0}"}}}}
buses:
  x: {{on: a, listen: "tcp://127.0.0.1:{1}"}}
  y: {{on: b, listen: "tcp://127.0.0.1:{2}"}}
bridges:
  motor: {{on: [a, b], join: [{{bus: {{a: x, b: y}}}}, {{can: {{channel: can0}}}}]}}
"""
REMOTE = """\
name: t
gateways: {{a: {{node: 1}}, b: {{node: 2}}, c: {{node: 3}}}}
brokers: {{main: {{on: c, listen: "tcp://127.0.0.1:{0}"}}}}
buses:
  x: {{on: a, listen: [{{url: "tcp://127.0.0.1:{1}", trunk: true}}, "tcp://127.0.0.1:{2}"]}}
bridges:
  motor: {{on: [a, b], join: [{{bus: x, trunk: true}}, {{can: {{channel: can0}}, trunk: true}}]}}
"""


@pytest.fixture
def key(tmp_path: Path) -> str:
    """Return the keys of a file."""
    new_key(str(tmp_path / "plant.key"))
    return f"keys: {tmp_path / 'plant.key'}\n"


@contextmanager
def running(text: str, more: str = "") -> Iterator[SimulatedPlant]:
    found = loads(text.format(*(free_port() for _ in range(3))) + more)
    with closing(SimulatedPlant(found)) as plant:
        plant.wait(8)
        yield plant


def seen(plant: SimulatedPlant, gateway: str) -> list[str]:
    """Return how a gateway sees the plant: the state of each gateway."""
    return [row["state"] for row in snapshot(plant.gateways[gateway].view())["plant"]["gateways"]]


def lines(plant: SimulatedPlant, gateway: str) -> list[str]:
    return [row["line"] for row in snapshot(plant.gateways[gateway].view())["plant"]["gateways"]]


@pytest.mark.parametrize("signed", [False, True])
def test_announcements_cross_trunks_as_frames_do_until_one_is_cut_and_no_ledger_counts_them(
    signed: bool, key: str
) -> None:
    with running(CHAIN, key if signed else "") as plant:
        assert [seen(plant, name) for name in "abc"] == [["answers"] * 3] * 3
        status = snapshot(plant.gateways["b"].view())
        assert {row["received"] + row["offered"] for hub in status["hubs"] for row in hub["links"]} == {0}
        assert [plant.heard(bus) for bus in "xyz"] == [[], [], []]
        plant.cut("y")
        plant.wait(18)
        assert [seen(plant, name) for name in "ac"] == [
            ["answers", "answers", "silent"],
            ["silent", "silent", "answers"],
        ]
        assert lines(plant, "a")[2].startswith("not heard since 20")
        plant.mend("y")
        plant.wait(15)
        assert [seen(plant, name) for name in "abc"] == [["answers"] * 3] * 3


@pytest.mark.parametrize("text", [CHAIN, BROKER], ids=["trunks", "broker"])
def test_what_is_announced_of_things_is_what_a_page_is_told_that_asks(text: str) -> None:
    with running(text) as plant:
        for name in "ab":
            status = snapshot(plant.gateways[name].view())
            asked = shown_marks(own_marks(status))
            heard = plant.gateways["c"].plant.marks()
            assert asked
            for thing, mark in asked.items():
                assert {key: heard[thing][key] for key in ("state", "text", "ways")} == {
                    key: mark[key] for key in ("state", "text", "ways")
                }


def test_a_metric_counts_gateways_with_another_file() -> None:
    with running(CHAIN) as plant:
        status = snapshot(plant.gateways["a"].view())
        assert b"buscoupler_other_files 0.0" in render(status, "")[0]
        status["plant"]["gateways"][1]["other_file"] = True
        assert b"buscoupler_other_files 1.0" in render(status, "")[0]


def test_gateways_that_share_a_broker_alone_hear_each_other_and_who_runs_it_hears_them() -> None:
    with running(BROKER) as plant:
        assert [seen(plant, name) for name in "abc"] == [["answers"] * 3] * 3
        assert plant.gateways["c"].plant.marks()["bridge motor@b"]["state"] == "ready"
        plant.fail("a")
        plant.wait(18)
        assert seen(plant, "b") == ["silent", "answers", "answers"]


def test_a_standby_that_dials_a_trunk_of_another_gateway_hears_and_is_heard(key: str) -> None:
    with running(REMOTE, key) as plant:
        assert [seen(plant, name) for name in "abc"] == [["answers"] * 3] * 3
        plant.cut("main")
        plant.wait(18)
        assert seen(plant, "b") == ["answers", "answers", "silent"]


def test_no_bus_is_joined_for_announcements() -> None:
    apart = (
        CHAIN.replace("trunks: y", "trunks: w")
        + '  w: {{on: b, listen: [{{url: "tcp://127.0.0.1:{2}", trunk: true}}]}}\n'
    )
    with running(apart) as plant:
        assert seen(plant, "b") == ["answers"] * 3
        assert seen(plant, "a") == ["answers", "answers", "unknown"]
        assert lines(plant, "a")[2].startswith("not heard: nothing comes from it")
