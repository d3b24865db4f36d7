"""The watch on a plant: one answer that is missing is no silence, and a change of the word is an event."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from appliance.plant.announcement import announced
from appliance.plant.asking import GatewayAnswer
from appliance.plant.note import note_of
from appliance.plant.places import PagePlace
from appliance.plant.watch import EVERY_S, PlantWatch
from tests.appliance.plant.plant_support import heard, role, status
from topologies.loading.loader import loads
from topologies.picture.marks import Mark

TOPOLOGY = loads("name: hall\ngateways: {gw-a: {}, gw-b: {}, gw-c: {}}", "t.yaml")
DEAD = GatewayAnswer("gw-b", None, "http://h: Connection refused")


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
    watch.take({"gw-b": heard("gw-b"), "gw-c": GatewayAnswer("gw-c", None, "refused")})
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

    async def ask(
        topology: str, others: Sequence[str], where: Sequence[PagePlace]
    ) -> dict[str, GatewayAnswer]:
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


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def announcing(told: Told) -> tuple[PlantWatch, Clock]:
    clock = Clock()
    watch = PlantWatch("gw-a", told, clock=clock, clock_ns=lambda: 10**18)
    watch.follow(TOPOLOGY, None)
    return watch, clock


def said(gateway: str, time_ns: int, **more: Any) -> bytes:
    return announced(note_of(status(gateway, time_ns=time_ns, **more)), {"bus b": Mark("ok")})


def test_who_was_heard_is_silent_after_two_announcements_that_are_missing_and_well_with_the_next() -> None:
    told = Told()
    watch, clock = announcing(told)
    watch.hear(said("gw-b", 10**18))
    clock.now_s = 2 * EVERY_S
    watch.judge(status(), {})
    assert states(watch) == ["answers", "answers", "unknown"]
    assert watch.answering == {"gw-b"}
    assert watch.marks()["bus b"]["state"] == "ok"
    clock.now_s = 3 * EVERY_S
    watch.judge(status(), {})
    assert states(watch) == ["answers", "silent", "unknown"]
    assert [line.partition("since")[0] for line in told] == ["health plant: trouble: gw-b: not heard "]
    watch.take({"gw-b": DEAD})
    watch.take({"gw-b": DEAD})
    assert watch.shown(status())["line"].endswith("; http://h: Connection refused")
    watch.hear(said("gw-b", 10**18 + 1))
    watch.judge(status(), {})
    assert told[1:] == ["health plant: ok"]


def test_the_last_word_of_a_gateway_that_died_while_it_forwarded_makes_no_two_of_one() -> None:
    told = Told()
    watch, clock = announcing(told)
    own = status(candidates=[role()])
    watch.hear(said("gw-b", 10**18, candidates=[role()]))
    for clock.now_s in (0.1, 0.2, EVERY_S + 0.1):
        watch.judge(own, {})
    assert told == []
    watch.hear(said("gw-b", 10**18 + 1, candidates=[role()]))
    watch.judge(own, {})
    watch.judge(own, {})
    assert told == ["health plant: trouble: bridge motor: gw-a and gw-b both forward"]


async def test_only_those_that_are_not_heard_are_asked_at_their_pages() -> None:
    pages = 'status: {listen: "http://127.0.0.1:%d"}'
    text = f"name: hall\ngateways: {{gw-a: {{}}, gw-b: {{{pages % 1}}}, gw-c: {{{pages % 2}}}}}"
    asked = list[str]()

    async def ask(
        topology: str, others: Sequence[str], where: Sequence[PagePlace]
    ) -> dict[str, GatewayAnswer]:
        asked.extend(place.gateway for place in where)
        return {}

    watch = PlantWatch("gw-a", Told(), ask, Clock())
    watch.follow(loads(text), None)
    watch.hear(said("gw-b", 10**18))
    assert watch.look(0.0, loads(text), asyncio.get_running_loop())
    await asyncio.sleep(0)
    assert asked == ["gw-c"]
    assert watch.look(EVERY_S, loads(text), asyncio.get_running_loop(), asks=False)
    assert asked == ["gw-c"]


def test_a_large_plant_that_starts_at_once_announces_itself_twice_and_one_that_goes_is_no_news() -> None:
    names = [f"gw-{number}" for number in range(60)]
    topology, clock = (
        loads(f"name: hall\ngateways: {{{', '.join(f'{name}: {{}}' for name in names)}}}"),
        Clock(),
    )
    watches = {name: PlantWatch(name, Told(), clock=clock, clock_ns=lambda: 10**18) for name in names}
    for watch in watches.values():
        watch.follow(topology, None)
    spoke = Counter[int]()
    for clock.now_s in (half / 2 for half in range(60)):
        for name in [name for name, watch in watches.items() if watch.is_due(clock.now_s, ("ok",))]:
            frame = watches[name].announcement(status(name), {}, ("ok",))
            spoke[int(clock.now_s)] += 1
            for other, watch in watches.items():
                if other != name:
                    watch.hear(frame)
        if clock.now_s == 15:
            del watches["gw-7"]
    assert spoke.pop(1) == 60
    assert max(spoke.values()) < 20
    assert sum(spoke.values()) < 60 * 4


def test_a_gateway_that_runs_another_file_for_long_is_not_well_itself() -> None:
    watch, clock = announcing(Told())
    told = list[str]()
    for number in range(130):
        clock.now_s = 5.0 * number
        watch.hear(said("gw-b", 10**18 + number, file="cd" * 32))
        told += [str(one) for one in watch.concerns("ab" * 32)]
    assert told == ["file: another one of the topology than on gw-b: abababab here, cdcdcdcd there"] * 10
    assert list(watch.concerns("cd" * 32)) == []


def test_a_gateway_announces_itself_every_few_seconds_and_soon_after_a_change() -> None:
    watch, clock = announcing(Told())
    times, word = list[float](), "ok"
    for clock.now_s in (quarter / 4 for quarter in range(60)):
        if clock.now_s == 7:
            word = "trouble"
        if clock.now_s == 9:
            watch.hear(said("gw-b", 10**18))
        if watch.is_due(clock.now_s, (word,)):
            watch.announcement(status(), {}, (word,))
            times.append(clock.now_s)
    assert times == [1, 6, 7, 9, 14]
