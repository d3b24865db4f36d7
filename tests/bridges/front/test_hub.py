"""The front of a side: everything behind it speaks patterns of the bridge, and every message is counted."""

import asyncio
import random
from itertools import pairwise

import pytest

from bridges.bridge import Bridge
from bridges.front.hub import FrontHub
from bridges.front.settings import Front, Limit
from bridges.front.thinning import Memory, passing
from bridges.policy import Policy
from bridges.side import Side
from bridges.simulate import I2cWire, run
from bus.hub import Hub
from bus.renaming import Renaming
from bus.wire.batch import Batch, from_payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack, unpack
from bus.wire.pattern import Pattern
from tests.bridges.support import RecordingPipe, recorder, say
from tests.helpers.peers import until

HALL = Front(Renaming(prefix=("hall-a",)))


def message(word: str, data: bytes = b"") -> bytes:
    return pack(1, Pattern(*word.split("/")), data)


class Room:
    """A bridge of a side with a front, to the left, and a plain one, to the right; each has one peer."""

    def __init__(self, front: Front, left: Policy = Policy(), right: Policy = Policy()) -> None:  # noqa: B008
        self.now_s = 0.0
        self.bridge = Bridge("b", 1, clock=lambda: self.now_s)
        self.sides: list[Side] = [self.bridge.side("left", left), self.bridge.side("right", right)]
        self.door: Hub = FrontHub(self.sides[0], front)
        self.left, self.right = recorder(self.door, "l"), recorder(self.sides[1], "r")

    def balanced(self) -> bool:
        for port in (port for side in self.sides for port in side.ports):
            chain = [port, port.inner, port.inner.inner]
            stats = [one.stats for one in chain if one is not None]
            if any(one.balance() for one in stats):
                return False
            for outer, inner in pairwise(stats):
                if inner.received != outer.received + sum(outer.rejected.values()):
                    return False
                if outer.sent != inner.offered:
                    return False
        return True


def test_filters_of_both_sides_see_the_patterns_of_the_bridge() -> None:
    room = Room(HALL, Policy(allow=[("hall-a", "temp")]), Policy(deny=[("hall-a", "temp", "2")]))
    say(room.door, room.left, message("temp/1"), message("temp/2"), message("door"))
    assert room.right.messages == [message("hall-a/temp/1")]
    say(room.sides[1], room.right, message("hall-a/temp/3"), message("temp/3"), message("hall-a/door"))
    assert room.left.messages == [message("temp/3")]
    assert room.balanced()


def test_what_has_no_name_or_too_long_a_one_is_counted_at_its_link() -> None:
    room = Room(Front(Renaming(strip=("s",), prefix=("p", "q"))))
    say(room.door, room.left, message("s/1"), message("x"), pack(1, (*Pattern("s"), *range(254))))
    say(room.sides[1], room.right, message("p/q/1"), message("s/1"), message("p/x"))
    account = room.bridge.accounts()["left"].stats
    assert account.rejected == {"no name": 1, "tokens": 1}
    assert account.dropped == {"no name": 2}
    assert (account.received, account.sent) == (1, 1)
    assert room.balanced()


def test_envelopes_keep_their_keys() -> None:
    trunk = Policy(trunk=True)
    room = Room(HALL, trunk, trunk)
    key = Envelope(77, 5, 4)
    say(room.door, room.left, wrap(message("temp"), key), wrap(message("temp"), key))
    say(room.sides[1], room.right, wrap(message("hall-a/x"), Envelope(78, 6, 4)))
    assert room.right.messages == [wrap(message("hall-a/temp"), key._replace(hops=3))]
    assert room.left.messages == [wrap(message("x"), Envelope(78, 6, 3))]
    assert room.sides[0].ports[0].stats.rejected == {"duplicate": 1}
    assert room.balanced()


def test_opaque_messages_are_frames_inside_or_pass_as_they_are() -> None:
    bus = Policy(opaque=True)
    room = Room(HALL._replace(opaque=("words",)), bus)
    say(room.door, room.left, b"hello", message("t"))
    assert room.right.messages == [message("words", b"hello"), message("hall-a/t")]
    say(room.sides[1], room.right, message("words", b"you"), message("hall-a/t"))
    assert room.left.messages == [b"you", message("t")]
    room = Room(HALL, bus, bus)
    say(room.door, room.left, b"hello")
    say(room.sides[1], room.right, b"you")
    assert (room.left.messages, room.right.messages) == ([b"you"], [b"hello"])


def test_unchanged_frames_and_floods_stay_out_and_the_ledger_says_so() -> None:
    room = Room(Front(refresh_s=10, limits=(Limit(("t",), 2), Limit(("out",), 1, outward=True))))
    for room.now_s in range(4):
        say(room.door, room.left, *(message("t", bytes((n,))) for n in range(5)), message("u", b"1"))
    account = room.bridge.accounts()["left"].stats
    assert account.rejected == {"limit": 12, "unchanged": 3}
    assert account.received == 9
    say(room.sides[1], room.right, message("out"), message("out"), message("t"))
    assert room.left.messages == [message("out"), message("t")]
    assert room.balanced()


@pytest.mark.parametrize("key", [None, Envelope(77, 5, 4)])
def test_a_change_above_a_limit_is_no_old_news_when_it_is_said_again(key: Envelope | None) -> None:
    """A valve that opened in a flood once was shut on the bus for as long as `refresh_ms`."""
    trunk = Policy(trunk=key is not None)
    room = Room(Front(refresh_s=60, limits=(Limit(("t",), 2),)), trunk, trunk)
    for room.now_s, said in ((0.0, "abc"), (0.5, "c"), (2.0, "cc"), (4.0, "c")):
        for n, data in enumerate(said):
            frame = message("t/valve", data.encode())
            each = None if key is None else key._replace(sequence=100 * int(2 * room.now_s) + n)
            say(room.door, room.left, frame if each is None else wrap(frame, each))
    heard = [take_apart(one)[1] if key else one for one in room.right.messages]
    assert [unpack(one).data for one in heard] == [b"a", b"b", b"c"]
    assert room.bridge.accounts()["left"].stats.rejected == {"limit": 2, "unchanged": 2}
    assert room.balanced()


def test_a_pattern_above_a_limit_leaves_nothing_in_the_memory() -> None:
    memory, now_s = Memory(60), 0.0
    for n in range(100):
        batch = from_payloads([message("t", bytes(n % 7)), pack(3, Pattern("u"), bytes(n))])
        assert passing(batch, memory, now_s, "unchanged", lambda *_: None) is not None
        memory.forget(batch)
        assert len(memory) == 0


def test_patterns_above_a_limit_are_news_also_if_they_filled_the_memory() -> None:
    memory, batch = Memory(60, patterns=2), from_payloads([message(f"t/{n}", b"on") for n in range(5)])
    for now_s in (0.0, 1.0):
        out = passing(batch, memory, now_s, "unchanged", lambda *_: None)
        assert out is not None
        assert out.count == 5
        memory.forget(batch)
    assert len(memory) == 0


def test_an_outward_limit_is_for_each_peer() -> None:
    room = Room(Front(limits=(Limit((), 1, outward=True),)))
    other = recorder(room.door, "l2")
    say(room.sides[1], room.right, message("a"), message("b"))
    assert room.left.messages == other.messages == [message("a")]


class _Waiting(RecordingPipe):
    """A pipe that sends nothing, and gives back what waits."""

    def send(self, batch: Batch) -> None:
        super().send(batch)
        self.stats.sent -= batch.count
        self.stats.queued += batch.count

    def purge(self, reason: str) -> list[bytes]:
        messages, self.messages = self.messages, []
        self.stats.queued -= len(messages)
        self.stats.drop(reason, len(messages))
        return messages


def test_what_is_taken_back_has_the_names_of_the_bridge_again() -> None:
    room = Room(HALL._replace(opaque=("words",)), Policy(opaque=True))
    waiting = _Waiting("slow")
    room.door.attach(waiting)
    messages = [message("hall-a/t"), message("words", b"hi"), message("hall-a/u")]
    say(room.sides[1], room.right, *messages, message("else"))
    assert room.sides[0].queued == 3
    assert room.sides[0].purge("fenced") == messages
    assert room.sides[0].queued == 0


def test_a_link_without_a_peer_misses_only_what_would_leave() -> None:
    room = Room(HALL)
    room.door.detach(room.left)
    room.door.enlist("link", "no peer")
    say(room.sides[1], room.right, message("hall-a/t"), message("else"))
    assert room.bridge.accounts()["left/link"].stats.dropped == {"no name": 1, "no peer": 1}


def test_other_settings_hold_from_the_next_batch_on() -> None:
    room = Room(HALL)
    assert isinstance(room.door, FrontHub)
    room.door.revise(Front(Renaming(prefix=("hall-b",))))
    say(room.door, room.left, message("t"))
    say(room.sides[1], room.right, message("hall-a/t"), message("hall-b/t"))
    assert room.right.messages == [message("hall-b/t")]
    assert room.left.messages == [message("t")]


@pytest.mark.parametrize("trunk", [False, True])
def test_whatever_comes_every_message_is_counted_once(trunk: bool) -> None:
    source = random.Random(trunk)
    words, datas = ("a", "b", "s/a", "p/x", "words", "s"), (b"", b"1", message("a"))
    renaming = Renaming(("s",), ((("a",), ("b",)),), ("p",))
    front = Front(renaming, 5, (Limit(("p", "b"), 3), Limit(("p",), 2, True)), ("words",))
    room = Room(front, Policy(trunk=trunk, opaque=True), Policy(opaque=True))
    for _ in range(200):
        room.now_s += source.random()
        made = [message(source.choice(words), source.choice(datas)) for _ in range(source.randrange(20))]
        made += [b"opaque", b"", b"x" * 3000, wrap(message("s/a"), Envelope(5, source.randrange(50)))]
        hub, pipe = source.choice(((room.door, room.left), (room.sides[1], room.right)))
        say(hub, pipe, *made)
    assert room.balanced()
    inside = {unpack(one).tokens for one in room.right.messages if take_apart(one).is_frame}
    assert {tokens[0] for tokens in inside} <= {*Pattern("p"), *Pattern("words")}


def test_names_cross_a_front_on_i2c_both_ways() -> None:
    """The chip stands for itself: its link has a pipe for each target."""

    async def scenario() -> tuple[list[bytes], list[bytes]]:
        loop, wire = asyncio.get_running_loop(), I2cWire([0x42])
        bridge = Bridge("b", 1, clock=loop.time)
        sides, chip = [bridge.side("wire"), bridge.side("right")], Hub("chip")
        right, ear = recorder(sides[1]), recorder(chip)
        link = wire.link()
        wire.targets[0x42].join(chip, loop)
        link.open(FrontHub(sides[0], HALL), loop)
        await until(lambda: all(pipe.state == "up" for pipe in link.targets.values()))
        say(chip, ear, message("says", b"1"))
        say(sides[1], right, message("hall-a/show", b"2"), message("show", b"3"))
        await until(lambda: bool(right.messages and ear.messages))
        link.close()
        return right.messages, ear.messages

    assert run(scenario()) == ([message("hall-a/says", b"1")], [message("show", b"2")])
