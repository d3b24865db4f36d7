"""Legal traffic among watched hubs, also of equal messages: nothing is lost, held for long, or cut."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from bus.balance import imbalances
from bus.hub import Hub
from bus.watch.canaries import is_canary
from tests.bus.watch.watched_support import ACK, Make, X, canaries, numbered, same
from tests.helpers.nets import Net, Program, wire


def one_hub(net: Net) -> list[Hub]:
    return [net.hub("hub")]


def with_listener(net: Net) -> list[Hub]:
    hubs = one_hub(net)
    Program(net, hubs[0])
    return hubs


def tree(net: Net) -> list[Hub]:
    hubs = [net.hub(f"hub{number}") for number in range(3)]
    for number in (1, 2):
        wire(net, hubs[number], hubs[0])
    return hubs[1:]


PLACES = {"one hub": one_hub, "with a listener": with_listener, "a tree": tree}


class Dialogue:
    """Two programs: one says `make(turn)` and waits until the other has said all of it again."""

    def __init__(self, net: Net, hubs: list[Hub], make: Make, turns: int, think_s: float = 0.0) -> None:
        self.make, self.turns, self.think_s = make, turns, think_s
        self.turn = self.back = 0
        self.far = Program(net, hubs[-1], answer=lambda message: [] if is_canary(message) else [message])
        self.near = Program(net, hubs[0], answer=self._answer)
        self.near.say(*make(0))

    def _answer(self, message: bytes) -> list[bytes]:
        self.back += not is_canary(message)
        if self.back < len(list(self.make(self.turn))):
            return []
        self.turn, self.back = self.turn + 1, 0
        if self.turn == self.turns:
            return []
        self.near.process.later(self.think_s, lambda: self.near.say(*self.make(self.turn)))
        return []


TALKS: dict[str, tuple[Make, int, float]] = {
    "an echo": (same, 2000, 0.0),
    "a slow echo": (same, 200, 0.004),
    "bursts": (lambda _: [X] * 100, 60, 0.0),
    "long bursts": (lambda _: [X] * 2000, 4, 0.0),
    "a value that changes at times": (lambda turn: numbered(turn // 100), 1000, 0.0),
    "other values": (numbered, 1000, 0.0),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("talk", TALKS)
def test_a_dialogue_loses_nothing_and_hears_no_canary(talk: str, place: str) -> None:
    make, turns, think_s = TALKS[talk]
    net = Net(1)
    dialogue = Dialogue(net, PLACES[place](net), make, turns, think_s)
    assert net.run(6.0, 400_000)
    assert dialogue.turn == turns
    assert (net.lost(), net.loops()) == (0, 0)
    # two hubs of a tree may hold the same message; long bursts go on while they are held
    assert canaries(net) <= (place != "one hub" and (place == "a tree" or talk == "long bursts"))
    assert imbalances(net.hubs) == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("senders", "pause_s"), [(2, 0.0005), (5, 0.01), (12, 0.1)])
def test_equal_readings_of_several_senders_all_arrive(senders: int, pause_s: float, place: str) -> None:
    net = Net(2)
    hubs = PLACES[place](net)
    there = len(net.programs)
    made = [Program(net, hubs[number % len(hubs)]) for number in range(senders)]
    for number, program in enumerate(made):
        program.process.later(pause_s * number / senders, partial(program.every, pause_s, 200, same))
    assert net.run(200 * pause_s + 2.0)
    assert [len([m for m in program.heard if m == X]) for program in made] == [200 * (senders - 1)] * senders
    assert there == 0 or net.programs[0].heard.count(X) == 200 * senders
    assert (net.lost(), net.loops()) == (0, 0)
    assert all(sum(map(is_canary, program.heard)) <= 3 for program in net.programs)


@pytest.mark.parametrize("place", PLACES)
def test_requests_and_replies_of_equal_bytes_all_arrive(place: str) -> None:
    """Two programs ask each other all the time, and answer what they are asked."""
    net, counts = Net(3), Counter[int]()

    def peer(number: int, hub: Hub) -> Program:
        def answer(message: bytes) -> list[bytes]:
            counts[number] += message == ACK
            return [ACK] * (message == X) + [X] * (message == ACK and counts[number] < 1000)

        return Program(net, hub, answer=answer)

    hubs = PLACES[place](net)
    for program in [peer(0, hubs[0]), peer(1, hubs[-1])]:
        program.say(X)
    assert net.run(10.0)
    assert counts == {0: 1000, 1: 1000}
    assert (net.lost(), net.loops()) == (0, 0)
    assert canaries(net) <= (0 if place == "one hub" else 4)


def test_a_ping_goes_round_among_many_and_late_joiners_hear_all_that_follows() -> None:
    net = Net(4)
    hub = net.hub("hub")
    made: list[Program] = []
    turns = [0]

    def answer(number: int) -> Callable[[bytes], list[bytes]]:
        def say(message: bytes) -> list[bytes]:
            if is_canary(message) or turns[0] % 4 != number or turns[0] >= 2000:
                return []
            turns[0] += 1
            return [X]

        return say

    made += [Program(net, hub, answer=answer(number)) for number in range(4)]
    turns[0] = 1
    made[0].say(X)
    assert net.run(0.05)
    late, before = Program(net, hub), turns[0]
    assert net.run(5.0)
    assert turns[0] == 2000
    assert late.heard.count(X) >= 2000 - before - 1
    assert (net.lost(), canaries(net)) == (0, 0)
