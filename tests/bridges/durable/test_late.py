"""What waited in a journal: where it goes, and where it must not."""

from contextlib import nullcontext

from bridges.bridge import Bridge
from bridges.policy import Policy
from bridges.side import Side
from bus.hub import Hub
from bus.lateness import late_ms, passing_late
from bus.patch import join
from bus.values import LastValues
from bus.wire.frame import pack
from bus.wire.pattern import Pattern
from tests.bridges.durable.gateways import Gateway, Make, disk
from tests.bridges.support import FRAME, RecordingPipe, recorder, say
from tests.helpers.peers import until


class Crossing:
    """A bridge between a bus and a medium, joined to the hub of the bus as in a gateway."""

    def __init__(self, late: bool = False) -> None:
        self.bus, self.bridge = Hub("shop"), Bridge("line", 5)
        self.inner = self.bridge.side("bus", Policy(opaque=True, late=True))
        self.medium: Side = self.bridge.side("can", Policy(late=late))
        join(self.bus, self.inner, "line")
        self.device = RecordingPipe("device")
        self.medium.attach(self.device)

    def pass_on(self, age_ms: int) -> None:
        with passing_late(age_ms) if age_ms else nullcontext():
            say(self.bus, None, FRAME)


def test_a_late_frame_leaves_on_no_medium() -> None:
    crossing = Crossing()
    crossing.pass_on(5000)
    (port,) = crossing.medium.ports
    assert crossing.device.messages == []
    assert port.stats.dropped == {"late": 1}
    crossing.pass_on(0)
    assert crossing.device.messages == [FRAME]


def test_a_late_frame_leaves_where_the_side_says_so() -> None:
    crossing = Crossing(late=True)
    crossing.pass_on(5000)
    assert crossing.device.messages == [FRAME]
    crossing.bridge.revise_side(crossing.medium, Policy())
    crossing.pass_on(5000)
    assert crossing.device.messages == [FRAME]


def test_a_late_frame_does_not_enter_a_window_that_a_takeover_would_send() -> None:
    crossing = Crossing()
    crossing.bridge.stand_by(lambda _: False)
    crossing.pass_on(5000)
    (port,) = crossing.inner.ports
    assert port.stats.rejected == {"late": 1}
    crossing.pass_on(0)
    assert port.stats.rejected["late"] == 1


def test_a_late_frame_leaves_on_a_trunk_only_by_pipes_that_know_its_age() -> None:
    bridge = Bridge("shop", 5)
    bridge.side("plain", Policy(opaque=True, late=True))
    trunk = bridge.side("trunk", Policy(trunk=True, opaque=True))
    plain, knowing = recorder(trunk, "older"), Knowing("end")
    trunk.attach(knowing)
    with passing_late(9000):
        say(bridge.sides[0], None, FRAME)
    assert plain.messages == []
    assert len(knowing.messages) == 1


class Knowing(RecordingPipe):
    takes_late = True


def test_a_late_value_does_not_replace_a_newer_one() -> None:
    values = LastValues()
    old, new = (pack(1, (7,), text) for text in (b"old", b"new"))
    values.take([new], 100.0)
    values.take([old], 40.0)
    assert [value.frame for value in values.read(Pattern())] == [new]
    values.take([old], 100.5)
    assert [value.frame for value in values.read(Pattern())] == [old]


def test_the_age_holds_for_the_call_alone() -> None:
    assert late_ms() == 0
    with passing_late(7):
        assert late_ms() == 7
    assert late_ms() == 0


class Clock:
    """A clock that is set forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return 1_800_000_000.0 + self.ahead_s


async def test_one_value_once_a_minute_for_an_hour_comes_sixty_times_three_gateways_on(make: Make) -> None:
    """A constant reading is no duplicate of itself, however close its copies come when they are caught up."""
    clock = Clock()
    a, b, c = (
        make("gw-a", disk(), "gw-b", unix_s=clock),
        make("gw-b", disk(), "gw-c"),
        make("gw-c", disk()),
    )
    for one in (a, b, c):
        await one.is_open()
    last = c.listen()
    b.dial(last.url, "gw-c")
    middle = b.listen()
    a.dial("tcp://127.0.0.1:1", "gw-b")
    for _ in range(60):
        a.say(FRAME)
        await until(lambda: not a.end("gw-b").stats.queued, what="the journal")
        clock.ahead_s += 60
    a.links[0].close()
    a.dial(middle.url, "gw-b")
    await c.hears(60)
    assert c.heard.messages == [FRAME] * 60
    assert b.heard.messages == [FRAME] * 60


async def test_what_waited_longer_than_a_clock_that_is_not_set_can_tell_is_kept_all_the_same(
    make: Make,
) -> None:
    """The gateway in the middle has just started, at 1970, and what comes was said an hour ago."""
    clock = Clock()
    a, b = make("gw-a", disk(), "gw-b", unix_s=clock), make("gw-b", disk(), "gw-c", unix_s=lambda: 5.0)
    await a.is_open()
    await b.is_open()
    b.dial("tcp://127.0.0.1:1", "gw-c")
    a.dial("tcp://127.0.0.1:1", "gw-b")
    a.say(FRAME)
    await until(lambda: not a.end("gw-b").stats.queued, what="the journal")
    clock.ahead_s += 3600
    a.links[0].close()
    a.dial(b.listen().url, "gw-b")
    await b.hears(1)
    await until(lambda: not b.end("gw-c").stats.queued, what="the second journal")
    assert b.end("gw-c").files.queued == 1


async def test_a_ring_of_three_doubles_nothing_an_hour_apart(make: Make) -> None:
    """Each of three gateways keeps for the two others. Two cannot reach each other for an hour: the third has
    brought all, and what they kept for each other is known when it comes."""
    clock, gateways = Clock(), dict[str, Gateway]()
    for name in ("gw-a", "gw-b", "gw-c"):
        others = [other for other in ("gw-a", "gw-b", "gw-c") if other != name]
        gateways[name] = make(name, disk(), *others, unix_s=clock)
        await gateways[name].is_open()
    a, b, c = gateways.values()
    at_a, at_b = a.listen("tcp://127.0.0.1:0", "gw-b", "gw-c"), b.listen("tcp://127.0.0.1:0", "gw-c")
    b.dial(at_a.url, "gw-a")
    c.dial(at_b.url, "gw-b")
    away = c.dial("tcp://127.0.0.1:1", "gw-a")
    ends = [end for one in (a, b, c) for end in one.ends]
    for number in range(30):
        a.say(pack(1, (7,), b"a%d" % number))
        c.say(pack(1, (7,), b"c%d" % number))
        await until(lambda: not any(end.stats.queued for end in ends), what="the journals")
        clock.ahead_s += 120
    await a.hears(60)
    await c.hears(60)
    away.close()
    c.dial(at_a.url, "gw-a")
    await until(
        lambda: not any(end.files.queued for one in gateways.values() for end in one.ends), what="all"
    )
    for one in (a, b, c):
        assert len(one.heard.messages) == len(set(one.heard.messages)) == 60
