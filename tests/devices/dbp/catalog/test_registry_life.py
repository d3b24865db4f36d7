"""Signs of life of services, who is asked, and who is gone."""

from typing import Any

import pytest

from devices.dbp.catalog import wire
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import LIVENESS
from devices.dbp.catalog.outcomes import Ask, Outcome
from devices.dbp.catalog.registry import Registry
from devices.dbp.catalog.wire import Command, parse
from tests.devices.dbp.catalog import original
from tests.devices.dbp.catalog.room import DISCONNECT, HOST, Room, answer, denied


def test_a_beat_over_tcp_is_acknowledged(room: Room) -> None:
    room.register("a", 1, peer=b"a")
    assert room.say(b"a", wire.HEARTBEAT, b"a") == Outcome(Command(wire.ACKNOWLEDGED))
    assert room.req(wire.HEARTBEAT, b"a") == Outcome(Command(wire.ACKNOWLEDGED))


SIGNS: list[tuple[bytes, Any]] = [
    (wire.HEARTBEAT, b"a"),
    (wire.PONG, b"a"),
    (wire.PONG, b""),
    (wire.ACKNOWLEDGED, b""),
    (wire.PING, b""),
    (wire.INFO_REQUEST, b""),
    (wire.UPDATE, {"name": "a"}),
    (wire.UPDATE, {"topics": 5}),
]


@pytest.mark.parametrize(("said", "body"), SIGNS)
def test_any_command_is_a_beat(room: Room, said: bytes, body: Any) -> None:
    room.register("a", 1, peer=b"a", liveliness=1000)
    for _ in range(10):
        assert room.wait(1.75) == []
        assert room.say(b"a", said, body).reply != DISCONNECT
    assert room.listed().keys() == {"a"}


@pytest.mark.parametrize("how", ["datagram", "over tcp", "update", "denied update", "registration"])
def test_a_sign_of_life_over_another_connection(room: Room, how: str) -> None:
    room.register("a", 1, liveliness=1000)
    for _ in range(10):
        assert room.wait(1.75) == []
        if how == "datagram":
            assert room.registry.beat("a", HOST, room.now_s) == ""
        elif how == "over tcp":
            room.req(wire.HEARTBEAT, b"a")
        elif how == "denied update":
            denied(room.req(wire.UPDATE, {"name": "a", "topics": 5}))
        elif how == "update":
            room.req(wire.UPDATE, {"name": "a"})
        else:
            room.register("a", 1, liveliness=1000)


def test_a_registered_peer_s_beats_stop_with_its_silence(room: Room) -> None:
    room.register("a", 1, peer=b"a")
    room.hear(b"a", [])
    for _ in range(24):
        room.wait(0.25)
        room.say(b"a", wire.PING)
    assert room.listed() == {}


def test_who_is_gone_is_not_listed_and_not_asked(room: Room) -> None:
    room.register("a", 1, peer=b"a")
    rounds = []
    for _ in range(24):
        room.now_s += 0.25
        rounds.append(room.registry.tick(room.now_s))
    at = [(step / 4, r) for step, r in enumerate(rounds, 1)]
    assert [s for s, r in at if r.asks] == [1, 2, 3, 4]
    assert [(s, r.suspect) for s, r in at if r.suspect] == [(2, ("a",))]
    assert [(s, r.gone) for s, r in at if r.gone] == [(5, ("a",))]
    assert room.listed() == {}
    assert room.say(b"a", wire.HEARTBEAT, b"a").reply == DISCONNECT


def test_nobody_is_gone_whose_ping_has_not_left(room: Room) -> None:
    for name in ("a", "b"):
        room.register(name, 1)
    for _ in range(40):
        room.now_s += 0.25
        room.registry.tick(room.now_s, waiting={"b"})
    assert list(room.listed()) == ["b"]
    assert [ask.name for ask in room.wait(3)] == ["b", "b"]
    assert not room.listed()


def test_suspect_is_said_again_after_a_recovery(room: Room) -> None:
    room.register("a", 1)
    suspects = 0
    for step in range(1, 41):
        room.now_s += 0.25
        suspects += len(room.registry.tick(room.now_s).suspect)
        if step % 12 == 0:
            room.registry.beat("a", HOST, room.now_s)
    assert suspects == 3
    assert room.listed().keys() == {"a"}


@pytest.mark.parametrize(
    ("frames", "refused"),
    [
        (original.PONG, ""),
        (original.NO_HANDLER, ""),
        ([b"", b"pong", original.TIME, b""], ""),
        ([b"", b"pong", original.TIME, b"\xff"], ""),
        ([], ""),
        ([b"", b"pong", original.TIME, b"Gondor"], "other name"),
    ],
)
def test_any_answer_is_life_but_another_name(room: Room, frames: list[bytes], refused: str) -> None:
    room.hear(b"1", original.REGISTRATION)
    for _ in range(8):
        for ask in room.wait(1):
            assert room.registry.answered(ask.name, parse(frames, room.bounds), room.now_s) == refused
    assert (room.listed() == {}) == bool(refused)
    assert room.registry.answered("x", parse(frames, room.bounds), room.now_s) == "unexpected"


def test_a_service_without_a_router_is_asked_over_its_connection(room: Room) -> None:
    room.say(b"p", wire.REGISTRATION, {"name": "a", "interfaces": {"pub": {"ip": "10.1.1.1", "port": 1}}})
    frames = [
        b"",
        wire.REGISTRATION,
        b"1795387285.25",
        b'{"name": "b", "interfaces": {"x": {"ip": "::1", "port": 1}}}',
    ]
    room.hear(b"q", frames)
    assert room.wait(1) == [Ask("a", None, b"p", True, HOST), Ask("b", None, b"q", False, HOST)]
    room.hear(b"p", [])
    assert Ask("a", None, b"", True, HOST) in room.wait(1)  # nothing more is said to p


def test_one_that_is_silent_from_the_start_is_suspect(room: Room) -> None:
    room.hear(b"1", original.REGISTRATION)
    assert room.registry.tick(room.now_s + 2.5).suspect == tuple(room.listed())


def test_an_update_changes_when_it_is_asked_and_a_refused_one_does_not() -> None:
    room = Room(all_entry_bytes=300)
    room.register("a", 1, liveliness=4000)
    assert (
        denied(room.req(wire.UPDATE, {"name": "a", "liveliness": 1000, "more": "x" * 300})) == "services full"
    )
    assert room.wait(3) == []
    room.req(wire.UPDATE, {"name": "a", "liveliness": 1000})
    assert room.wait(1.75) == []
    assert [ask.name for ask in room.wait(0.25)] == ["a"]


def test_the_life_of_services_is_told_in_whole_milliseconds(room: Room) -> None:
    room.register("a", 1, liveliness=1500.6)
    room.register("b", 2)
    room.now_s += 3.25
    life = answer(room.req(wire.INFO_REQUEST, LIVENESS.encode()))
    assert life == {
        "a": {"state": "suspect", "silence_ms": 3250, "interval_ms": 1501, "host": HOST, "beats": True},
        "b": {"state": "suspect", "silence_ms": 3250, "interval_ms": 1000, "host": HOST, "beats": False},
    }


def test_a_registry_is_not_strict_unless_it_is_told() -> None:
    registry = Registry(Bounds())
    outcome = registry.take(b"1", HOST, parse(original.REGISTRATION, Bounds()), 0.0)
    assert outcome.reply == Command(wire.APPROVED)
