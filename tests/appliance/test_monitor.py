"""Events: a change is noticed once, logged, kept, and published on the bus; `top` shows it."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from appliance.commands.top import local_statuses
from appliance.monitor import Monitor
from appliance.status.client import ask, status_socket
from appliance.status.responder import status_responder
from appliance.status.rows import LinkRow
from bridges.bridge import Bridge
from bus.events import PATTERN, Event, read_event
from bus.hub import Hub, Link, State
from bus.ledger import Stats
from bus.watch.watched import WatchedHub
from bus.wire.batch import Batch, from_payloads
from bus.wire.frame import DATA_BYTES_MAX, pack, unpack
from bus.wire.pattern import Pattern
from tests.bridges.support import RecordingPipe
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import Ear
from topologies.loading.loader import loads

NOW_NS = 1_700_000_000_000_000_000


class FakeLink:
    name = url = "can:can0"
    state: State = "opening"
    condition, fault, losses, queue_bytes = "", "", 0, 0

    def open(self, hub: Hub, loop: asyncio.AbstractEventLoop) -> None: ...
    def close(self) -> None: ...

    def revise(self, _: Link) -> bool:
        return False


class Parts:
    """A bus with a link; `linked` is False for a test in which links do not matter."""

    def __init__(self, linked: bool = True) -> None:
        self.link, self.hub, self.linked = FakeLink(), WatchedHub("plant"), linked
        self.others = list[Link]()

    def rows(self) -> Iterable[LinkRow]:
        links = (self.link, *self.others) if self.linked else ()
        return [LinkRow(self.hub, link.name, link) for link in links]

    def watched_links(self) -> Iterable[LinkRow]:
        return self.rows()

    def hubs(self) -> Iterable[Hub]:
        return [self.hub]

    def say(self, events: list[bytes], before: Callable[[], None]) -> bool:
        if events:
            before()
            self.hub.publish(from_payloads(events))
        return bool(events)


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def monitor(parts: Parts) -> Monitor:
    return Monitor("gw", parts, clock_ns=lambda: NOW_NS)


def causes(monitor: Monitor) -> list[tuple[str, str]]:
    return [(event.kind, event.cause) for event in monitor.events]


def test_a_link_is_an_event_when_its_state_changes(parts: Parts, monitor: Monitor) -> None:
    monitor.scan(0)
    parts.link.state = "up"
    monitor.scan(1)
    monitor.scan(2)
    parts.link.state, parts.link.fault, parts.link.losses = "waiting", "no such device", 1
    monitor.scan(3)
    assert causes(monitor) == [("link", "up"), ("link", "waiting: no such device")]
    assert monitor.events[-1].counts == {"losses": 1}
    assert monitor.events[-1].source == "gw/plant/can:can0"


def test_error_counters_that_change_are_no_events(parts: Parts, monitor: Monitor) -> None:
    """A wire that fails would fill the events with them, and its log."""
    parts.link.state = "up"
    for number in range(100):
        parts.link.condition = f"error-passive: error counters {number} sending, 9 receiving"
        monitor.scan(number)
    parts.link.condition = "error-active"
    monitor.scan(100)
    first = "up: error-passive: error counters 0 sending, 9 receiving"
    assert causes(monitor) == [("link", first), ("link", "up: error-active")]


def test_a_link_logs_its_own_troubles_and_the_log_has_them_once(
    parts: Parts, monitor: Monitor, caplog: pytest.LogCaptureFixture
) -> None:
    parts.link.state = "up"
    monitor.scan(0)
    parts.link.state, parts.link.losses = "waiting", 1
    monitor.scan(1)
    parts.link.state = "up"
    with caplog.at_level(logging.INFO):
        monitor.scan(2)
    told = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert told == [(logging.INFO, monitor.events[-1].line())]


def test_a_link_that_was_lost_and_back_between_two_looks_is_an_event(parts: Parts, monitor: Monitor) -> None:
    parts.link.state = "up"
    monitor.scan(0)
    parts.link.losses = 1
    monitor.scan(1)
    assert [event.counts["losses"] for event in monitor.events] == [0, 1]


def test_two_links_of_one_name_are_watched_each(parts: Parts, monitor: Monitor) -> None:
    """Two bridges may be clients of the same TMQ brokers."""
    other = FakeLink()
    parts.others = [other]
    parts.link.state, other.state, other.fault = "up", "waiting", "refused"
    for second in range(3):
        monitor.scan(second)
    assert causes(monitor) == [("link", "up"), ("link", "waiting: refused")]
    parts.others = []
    parts.link.losses = 1
    monitor.scan(3)
    assert len(monitor.events) == 3


def test_a_link_that_has_nobody_for_a_while_is_an_event_and_its_end_says_what_was_missed(
    parts: Parts, monitor: Monitor
) -> None:
    parts.link.fault = "no such device"
    parts.hub.enlist("can:can0", "no device")
    for second in range(20):
        if second == 10:
            parts.hub.publish(from_payloads([b"one", b"two"]))
        monitor.scan(second)
    parts.link.state = "up"
    monitor.scan(20)
    monitor.scan(21)
    assert [(event.kind, event.cause, event.counts) for event in monitor.events] == [
        ("link", "not up for 3 s: no such device", {"losses": 0}),
        ("link", "not up for 10 s: no such device", {"losses": 0, "no_device": 2}),
        ("link", "up after 20 s", {"losses": 0, "no_device": 2}),
    ]


@pytest.mark.parametrize(("missed", "told"), [(0, "up"), (3, "up after 2 s")])
def test_a_link_that_is_there_in_time_is_no_trouble_and_what_it_missed_is_told(
    parts: Parts, monitor: Monitor, missed: int, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    parts.hub.enlist("can:can0", "no device")
    monitor.scan(0)
    parts.hub.publish(from_payloads([b""] * missed))
    parts.link.state = "up"
    monitor.scan(2)
    assert causes(monitor) == [("link", told)]
    assert monitor.events[0].counts.get("no_device", 0) == missed
    assert caplog.records == []


def test_a_listener_that_nobody_has_dialled_is_no_event(parts: Parts, monitor: Monitor) -> None:
    parts.link.state = "up"
    parts.hub.enlist("can:can0", "no peer")
    monitor.scan(0)
    parts.hub.publish(from_payloads([b"one", b"two"]))
    for second in range(20):
        monitor.scan(second)
    assert causes(monitor) == [("link", "up")]
    assert monitor.down_ms == {}


def test_drops_are_an_event_with_counts_but_not_at_every_look(parts: Parts, monitor: Monitor) -> None:
    parts.linked, ear = False, Ear(parts.hub)
    for second in range(11):
        ear.stats.offered += 10
        ear.stats.drop("queue full", 10)
        monitor.scan(second)
    assert [event.counts for event in monitor.events] == [
        {"queue_full": 10},
        {"queue_full": 50},
        {"queue_full": 50},
    ]


def test_drops_and_rejects_are_told_by_the_name_of_the_link_for_people(
    parts: Parts, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, asked = "1 can/can:can0", list[int]()
    stats = {one: Stats() for one in (name, "2 can/can:can1")}
    for one, counts in stats.items():
        parts.hub.keep(one, counts)

    def rows() -> Iterable[LinkRow]:
        asked.append(1)
        return [LinkRow(parts.hub, name, parts.link, label="axis")]

    monitor.scan(0)
    for counts in stats.values():
        counts.offered += 1
        counts.drop("queue full")
        counts.reject("forged")
    monkeypatch.setattr(parts, "rows", rows)
    parts.linked = False
    monitor.scan(1)
    assert {one.source for one in monitor.concerns(1)} >= {"plant/axis", "plant/can:can1"}
    assert not [one for one in monitor.concerns(1) if name in one.source]
    assert len(asked) == 5  # for the links, the outages, all names together, and twice for the concerns


def test_what_is_dropped_between_two_steps_of_a_look_is_told_by_the_next(
    parts: Parts, monitor: Monitor
) -> None:
    """The events of a look are published at its end, and only what they lost themselves is no event."""
    parts.linked, ear = False, Ear(parts.hub)
    monitor.scan(0)
    monitor.record("link", "x", "y")
    for number, _ in enumerate(monitor.steps(10)):
        if number == 0:
            ear.stats.offered += 1
            ear.stats.drop("queue full", 1)
    monitor.scan(20)
    assert [event.counts for event in monitor.events if event.kind == "drop"] == [{"queue_full": 1}]


def test_drops_of_a_part_that_was_away_are_told_from_the_first_on() -> None:
    parts = Parts(linked=False)
    monitor = Monitor("gw", parts)
    for start_s, count in ((0, 5000), (100, 3000)):
        parts.hub = WatchedHub("plant")
        monitor.scan(start_s)
        stats = Stats()
        parts.hub.keep("x", stats)
        stats.drop("queue full", count)
        stats.reject("forged", count)
        monitor.scan(start_s + 10)
        assert len(list(monitor.concerns(start_s + 10))) == 2
        parts.hub = WatchedHub("other")
        monitor.scan(start_s + 20)
    assert [event.counts for event in monitor.events] == [{"queue_full": 5000}, {"queue_full": 3000}]


def test_drops_of_peers_that_left_are_an_event_and_the_monitor_remembers_links_only(
    parts: Parts, monitor: Monitor
) -> None:
    for second in range(200):
        link = f"tcp://0.0.0.0:{second % 2}"
        peer = RecordingPipe(f"{link} from 10.0.0.1:{second}", link)
        parts.hub.attach(peer)
        peer.stats.drop("queue full")
        parts.hub.detach(peer)
    monitor.scan(0)
    assert [(event.source, event.counts) for event in monitor.events] == [
        ("gw/plant/tcp://0.0.0.0:0", {"queue_full": 100}),
        ("gw/plant/tcp://0.0.0.0:1", {"queue_full": 100}),
    ]


def test_what_a_medium_loses_behind_a_bridge_is_an_event_but_not_what_a_policy_drops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bridge, ear = Bridge("joint", 7), Ear(Hub())
    bridge.side("line").attach(ear)
    parts = Parts(linked=False)
    parts.hub = bridge
    monitor = Monitor("gw", parts, clock_ns=lambda: NOW_NS)
    for reason in (
        "conflated",
        "shed",
        "aged out",
        "pattern",
        "peer gone",
        "no peer",
        "closed",
        "heard",
        "fenced",
    ):
        ear.stats.drop(reason, 2)
    monitor.scan(0)
    assert (causes(monitor), caplog.records) == ([], [])
    ear.stats.drop("bus off", 3)
    monitor.scan(10)
    assert causes(monitor) == [("drop", "messages were dropped")]
    assert monitor.events[0].source == "gw/joint/line"
    assert monitor.events[0].counts == {"bus_off": 3}


def test_a_loop_is_an_event_that_names_what_was_cut(parts: Parts, monitor: Monitor) -> None:
    ears = [Ear(parts.hub), Ear(parts.hub)]
    parts.hub.ask(pack(1, (7,)), (ears[1],))
    ears[0].say(ears[1].heard.pop())
    monitor.scan(0)
    assert monitor.events[-1].kind == "loop"
    assert "ear for 10 s" in monitor.events[-1].cause


def test_events_are_said_on_the_bus_and_can_be_read(parts: Parts, monitor: Monitor) -> None:
    ear = Ear(parts.hub)
    made = monitor.record("takeover", "fridge", "gw-a is silent", replayed=3)
    monitor.scan(0)
    assert unpack(ear.heard[0]).tokens == (*PATTERN, *Pattern("takeover"))
    assert read_event(ear.heard[0]) == made
    assert made == Event(NOW_NS, "takeover", "gw/fridge", "gw-a is silent", {"replayed": 3})


def test_a_flood_of_events_does_not_flood_the_bus(parts: Parts, monitor: Monitor) -> None:
    ear = Ear(parts.hub)
    for number in range(100):
        monitor.record("lease", "fridge", str(number))
    monitor.scan(0)
    assert len(ear.heard) == 20
    monitor.record("lease", "fridge", "next")
    monitor.scan(1)
    assert len(ear.heard) == 21


def test_what_is_dropped_of_events_makes_no_more_of_them(parts: Parts, monitor: Monitor) -> None:
    """The queue of a peer is full: an event about that is dropped there too."""
    parts.linked, full = False, RecordingPipe("full", "full")
    parts.hub.attach(full)

    def send(batch: Batch) -> None:
        full.stats.offered += batch.count
        full.stats.drop("queue full", batch.count)

    full.send = send  # type: ignore[method-assign]
    parts.hub.publish(from_payloads([b"x"]))
    for second in range(0, 100, 10):
        monitor.scan(second)
    assert [event.counts for event in monitor.events] == [{"queue_full": 1}]
    parts.hub.publish(from_payloads([b"x"]))
    monitor.scan(100)
    assert [event.counts for event in monitor.events][1:] == [{"queue_full": 1}]


def test_a_long_cause_is_cut() -> None:
    event = Event(1, "link", "s", "é" * 3000, {"n": 1})
    assert len(unpack(event.frame()).data) <= DATA_BYTES_MAX
    assert read_event(event.frame()) == event._replace(cause="é" * 253 + "...")


def test_a_kind_of_a_program_is_read_as_well_and_what_is_no_event_is_none() -> None:
    event = Event(5, "door", "cell 4", "left open", {"seconds": 90})
    assert read_event(event.frame()) == event
    odd = [b"", b"{}", b"[]", b'{"time_ns": "1"}', b"[" * 2000, b"\xff"]
    assert [read_event(pack(1, (*PATTERN, 7), data)) for data in odd] == [None] * len(odd)
    assert read_event(pack(1, (7,), b"")) is None


TEXT = "name: t\ngateways: {gw: {address: 127.0.0.1}}\nbuses: {b: {on: gw, listen: tcp://127.0.0.1:0}}\n"


async def test_the_status_socket_answers_and_goes_with_its_process(socket_path: Path) -> None:
    appliance = appliance_of(loads(TEXT, "t.yaml"), "gw")
    path = socket_path.parent / status_socket(["b"])
    server = status_responder(path, appliance.view())
    await server.open()
    with pytest.raises(FileExistsError):
        await status_responder(path, appliance.view()).open()
    loop = asyncio.get_running_loop()
    status = await loop.run_in_executor(None, ask, path)
    assert (status["gateway"], [hub["name"] for hub in status["hubs"]]) == ("gw", ["b"])
    (found,), left = await loop.run_in_executor(None, local_statuses, path.parent)
    assert (found["pid"], left) == (os.getpid(), {})
    server.close()
    assert not path.exists()


async def test_a_socket_left_behind_is_taken_over(socket_path: Path) -> None:
    appliance = appliance_of(loads(TEXT, "t.yaml"), "gw")
    socket_path.touch()
    server = status_responder(socket_path, appliance.view())
    await server.open()
    server.close()


def test_nobody_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from appliance.commandline.cli import main

    assert main(["top", "--run-directory", str(tmp_path)]) == 1
    assert "nothing answers" in capsys.readouterr().err
