"""The watch on a plant: one answer that is missing is no silence, and a change of the word is an event."""

import asyncio
from collections.abc import Sequence
from typing import Any

from appliance.plant.asking import Heard
from appliance.plant.places import Place
from appliance.plant.watch import EVERY_S, PlantWatch
from tests.appliance.plant.plant_support import heard, status
from topologies.loading.loader import loads

TOPOLOGY = loads("name: hall\ngateways: {gw-a: {}, gw-b: {}, gw-c: {}}", "t.yaml")
DEAD = Heard("gw-b", None, "http://h: Connection refused")


class Told(list[str]):
    def __call__(self, kind: str, source: str, cause: str, level: int) -> None:
        self.append(f"{kind} {source}: {cause}")


def states(watch: PlantWatch) -> list[str]:
    return [row["state"] for row in watch.shown(status())["gateways"]]


def test_a_gateway_is_silent_at_the_second_answer_that_is_missing() -> None:
    told = Told()
    watch = PlantWatch("gw-a", told)
    for answers, state in ((heard("gw-b"), "answers"), (DEAD, "answers"), (DEAD, "silent")):
        watch.take({"gw-b": answers})
        watch.judge(status(), {})
        assert states(watch) == ["answers", state, "unknown"]
    assert told == ["health plant: trouble: gw-b: does not answer: http://h: Connection refused"]
    watch.take({"gw-b": heard("gw-b")})
    watch.judge(status(), {})
    assert told[1:] == ["health plant: ok"]


def test_one_without_a_page_that_goes_is_silent_too_and_one_that_never_answered_is_not_told_at_once() -> None:
    watch = PlantWatch("gw-a", Told())
    watch.take({"gw-b": heard("gw-b"), "gw-c": Heard("gw-c", None, "refused")})
    assert states(watch) == ["answers", "answers", "unknown"]
    watch.take({})
    watch.take({})
    assert states(watch) == ["answers", "silent", "unknown"]


def test_marks_are_those_that_gateways_said_of_themselves() -> None:
    watch = PlantWatch("gw-a", Told())
    one = heard("gw-b")
    assert one.note is not None
    watch.take({"gw-b": one._replace(note={**one.note, "marks": {"bus b": {"state": "ok"}}}), "gw-c": DEAD})
    assert watch.marks() == {"bus b": {"state": "ok"}}


async def test_others_are_asked_one_round_at_a_time_and_a_defect_does_not_end_the_watch() -> None:
    rounds = list[Sequence[str]]()
    gate = asyncio.Event()

    async def ask(topology: str, others: Sequence[str], where: Sequence[Place]) -> dict[str, Heard]:
        rounds.append(others)
        await gate.wait()
        raise ZeroDivisionError

    watch, loop = PlantWatch("gw-a", Told(), ask), asyncio.get_running_loop()
    assert watch.look(0.0, TOPOLOGY, loop)
    await asyncio.sleep(0)
    assert not watch.look(100.0, TOPOLOGY, loop)
    gate.set()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not watch.look(EVERY_S - 0.1, TOPOLOGY, loop)
    assert watch.look(EVERY_S, TOPOLOGY, loop)
    await asyncio.sleep(0)
    assert rounds == [["gw-b", "gw-c"]] * 2
    watch.close()
    watch.close()


def test_a_plant_of_one_gateway_asks_nobody() -> None:
    alone: Any = None
    assert not PlantWatch("gw-a", Told()).look(0.0, loads("name: t\ngateways: {gw-a: {}}", "t.yaml"), alone)
