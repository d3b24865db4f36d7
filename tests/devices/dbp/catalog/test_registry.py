"""Who is listed and what is answered, rule by rule, and floods."""

from typing import Any

import pytest

from devices.dbp.catalog import wire
from devices.dbp.catalog.outcomes import Ask, Outcome
from devices.dbp.catalog.wire import Command, parse
from tests.devices.dbp.catalog import original
from tests.devices.dbp.catalog.room import DISCONNECT, ELSEWHERE, HOST, SILENT, Room, answer, denied, word


def test_the_original_registers_updates_and_is_found(room: Room) -> None:
    assert room.hear(b"1", original.REGISTRATION) == Outcome(Command(b"OwO"), "", True)
    fields = {
        "interfaces": {"router": {"ip": HOST, "port": 5247}},
        "reg_time": "Sun Nov 22 22:40:38 2026",
        "topics": None,
    }
    assert answer(room.hear(b"2", original.ALL)) == {"Rohan": fields}
    assert answer(room.hear(b"2", original.ONE)) == {"Rohan": fields}
    assert answer(room.hear(b"2", original.OTHER)) == {"Error": "inactive: No"}
    assert room.hear(b"3", original.UPDATE) == Outcome(Command(b"u.u"), "", True)
    assert answer(room.hear(b"2", original.ONE)) == {"Rohan": {**fields, "topics": ["x"]}}
    for _ in range(10):
        for ask in room.wait(1):
            assert ask == Ask("Rohan", (HOST, 5247), b"1", True, HOST)
            assert room.registry.answered(ask.name, parse(original.PONG, room.bounds), room.now_s) == ""
    assert room.listed().keys() == {"Rohan"}


def test_one_several_or_all_services(room: Room) -> None:
    assert room.listed() == {}
    for port, name in enumerate(("a", 'b "é"', "c"), 1):
        room.register(name, port)
    assert room.listed().keys() == {"a", 'b "é"', "c"}
    several = answer(room.req(wire.INFO_REQUEST, b"c", b"x", 'b "é"'.encode(), b"c", b"y"))
    assert several == {"Error": "inactive: x, y", "c": several["c"], 'b "é"': several['b "é"']}
    assert several["c"]["interfaces"]["router"]["port"] == 3
    assert answer(room.req(wire.INFO_REQUEST, b"x")) == {"Error": "inactive: x"}
    assert answer(room.req(wire.INFO_REQUEST, b"a")).keys() == {"a"}


def test_a_reply_is_packed_again_only_after_a_change(room: Room) -> None:
    room.register("a", 1)
    first = room.registry.services.every()
    assert room.registry.services.every() is first
    room.register("b", 2)
    assert room.registry.services.every() != first


def test_a_name_of_a_living_service_is_denied(room: Room) -> None:
    room.register("a", 1)
    assert denied(room.register("a", 1, host=ELSEWHERE)) == "name taken"
    assert denied(room.register("a", 2)) == "name taken"
    assert room.listed()["a"]["interfaces"]["router"] == {"ip": HOST, "port": 1}
    room.wait(7)
    assert word(room.register("a", 1, host=ELSEWHERE)) == wire.APPROVED


def test_the_same_service_registers_again(room: Room) -> None:
    room.register("a", 1, more=1)
    assert room.register("a", 1, more=2) == Outcome(Command(wire.APPROVED), kept=True)
    assert room.listed()["a"]["more"] == 2
    assert len(room.registry.services) == 1


def test_the_connection_that_registered_last_is_the_service_s(room: Room) -> None:
    room.register("a", 1, peer=b"old")
    room.register("a", 1, peer=b"new")
    assert room.say(b"new", wire.PONG, b"a") == Outcome()
    assert room.say(b"old", wire.PONG, b"a").reply == DISCONNECT
    assert room.say(b"new", wire.PONG, b"a") == Outcome()


def test_denied_says_every_reason(room: Room) -> None:
    outcome = room.req(wire.REGISTRATION, {"name": "Error", "topics": 5})
    assert outcome.reply is not None
    assert outcome.reply.word == wire.DENIED
    assert [text.partition(b":")[0] for text in outcome.reply.body] == [b"name", b"interfaces", b"topics"]
    assert denied(outcome) == "name"
    assert room.listed() == {}


def test_denied_may_try_again_over_the_same_connection(room: Room) -> None:
    assert denied(room.register("Error", 1, peer=b"p")) == "name"
    assert word(room.register("a", 1, peer=b"p")) == wire.APPROVED


def test_strict_denies_what_the_original_says() -> None:
    room = Room(strict=True)
    assert denied(room.hear(b"1", original.REGISTRATION)) == "function"
    assert word(room.register("a", function="f", liveliness=1000)) == wire.APPROVED


def test_the_interval_is_agreed(room: Room) -> None:
    assert room.register("a", 1, liveliness=1000).reply == Command(wire.APPROVED)
    assert room.register("b", 2, liveliness=1).reply == Command(wire.APPROVED, (b'{"liveliness": 250.0}',))
    update = room.req(wire.UPDATE, {"name": "a", "liveliness": 10**6})
    assert update.reply == Command(wire.ACKNOWLEDGED, (b'{"liveliness": 60000.0}',))
    asks = room.wait(1)
    assert [ask.name for ask in asks] == ["b"] * 3  # at 500, 750 and 1000 ms
    assert denied(room.req(wire.UPDATE, {"name": "a", "liveliness": None})) == "liveliness"


def test_an_update_changes_the_fields_that_it_has(room: Room) -> None:
    room.register("a", 1, more=1, other=1)
    assert room.listed()["a"]["more"] == 1
    assert room.req(wire.UPDATE, {"name": "a"}, {"more": 2}).reply == Command(wire.ACKNOWLEDGED)
    moved = {"router": {"ip": "localhost", "port": 9}}
    room.req(wire.UPDATE, {"name": "a", "interfaces": moved})
    assert room.listed()["a"] == {"interfaces": {"router": {"ip": HOST, "port": 9}}, "more": 2, "other": 1}
    assert {ask.address for ask in room.wait(1)} == {(HOST, 9)}


def test_an_update_that_is_wrong_changes_nothing(room: Room) -> None:
    room.register("a", 1, peer=b"a")
    room.register("b", 2, peer=b"b")
    before = room.listed()
    assert denied(room.req(wire.UPDATE, {"name": "a", "topics": 5})) == "topics"
    assert denied(room.req(wire.UPDATE, {"name": "a", "more": 1}, host=ELSEWHERE)) == "not yours"
    assert denied(room.say(b"b", wire.UPDATE, {"name": "a", "more": 1})) == "not yours"
    assert denied(room.req(wire.UPDATE, {"name": 5})) == "name"
    assert denied(room.req(wire.UPDATE, {"more": 5})) == "name"
    assert room.listed() == before


def test_an_update_needs_no_name_on_the_service_s_own_connection(room: Room) -> None:
    room.register("a", 1, peer=b"a")
    assert room.say(b"a", wire.UPDATE, {"more": 1}) == Outcome(Command(wire.ACKNOWLEDGED), kept=True)
    assert room.listed()["a"]["more"] == 1


UNEXPECTED = [
    (b"own", wire.REGISTRATION, {"name": "b", "interfaces": {"router": {"ip": "::1", "port": 3}}}),
    (b"own", wire.HEARTBEAT, b"b"),
    (b"own", wire.INFO_REPLY, {}),
    (b"own", wire.APPROVED, b""),
    (b"own", wire.DENIED, b"no"),
    (b"new", wire.INFO_REPLY, {}),
    (b"new", wire.APPROVED, {}),
    (b"new", wire.DENIED, b"no"),
    (b"new", wire.UPDATE, {"name": "b"}),
    (b"new", wire.HEARTBEAT, b"b"),
    (b"new", wire.ACKNOWLEDGED, b""),
    (b"new", wire.PONG, b"a"),
]


@pytest.mark.parametrize(("peer", "said", "body"), UNEXPECTED)
def test_a_valid_but_unexpected_command_gets_a_disconnect_and_then_silence(
    room: Room, peer: bytes, said: bytes, body: Any
) -> None:
    room.register("a", 1, peer=b"own")
    assert room.say(peer, said, body) == Outcome(DISCONNECT, "unexpected")
    for again in (wire.INFO_REQUEST, said, wire.DISCONNECT):
        assert room.say(peer, again, body if again == said else b"") == SILENT
    assert room.listed().keys() == {"a"}


def test_a_beat_from_another_host_is_unexpected(room: Room) -> None:
    room.register("a", 1)
    assert room.req(wire.HEARTBEAT, b"a", host=ELSEWHERE).reply == DISCONNECT
    assert room.registry.beat("a", ELSEWHERE, room.now_s) == "unexpected"


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"x", b"u_U", b"1", b""],
        [b"", b"<\\3", b"1", b""],
        [b"", b"UwU", b"1", b"["],
        [b"", b"?", b"1"],
    ],
)
def test_an_invalid_message_makes_an_invalid_peer(room: Room, frames: list[bytes]) -> None:
    room.register("a", 1, peer=b"p")
    outcome = room.hear(b"p", frames)
    assert outcome.reply is None
    assert outcome.refused in wire.REFUSED
    assert room.say(b"p", wire.INFO_REQUEST, b"") == SILENT
    assert room.listed().keys() == {"a"}
    assert word(room.register("a", 1)) == wire.APPROVED


@pytest.mark.parametrize(
    "frames", [[], [b"", b"</3", b"1", b""], [b"", b"OwO", b"1", b""], [b"", b"UwU", b"1", b"["]]
)
def test_who_comes_again_with_its_identity_on_a_new_connection_is_heard(
    room: Room, frames: list[bytes]
) -> None:
    room.register("a", 1, peer=b"own")
    room.hear(b"own", frames)
    assert room.say(b"own", wire.PING, b"") == SILENT
    room.registry.left(b"own")
    assert word(room.register("a", 1, peer=b"own")) == wire.APPROVED
    room.registry.left(b"own")  # by a lost connection, without a word
    assert word(room.register("a", 1, peer=b"own")) == wire.APPROVED


def test_a_silenced_peer_is_forgotten_when_it_is_quiet_for_long(room: Room) -> None:
    room.hear(b"p", [])
    for _ in range(5):
        room.now_s += 59
        assert room.say(b"p", wire.PING, b"") == SILENT
    room.now_s += 60
    assert room.say(b"p", wire.PING, b"").reply == Command(wire.PONG)
    room.hear(b"q", [])
    room.wait(59)
    assert len(room.registry.silenced) == 1
    room.wait(1)
    assert len(room.registry.silenced) == 0


def test_the_memory_of_silenced_peers_is_bounded() -> None:
    room = Room(silenced=3)
    for peer in (b"a", b"b", b"c"):
        room.hear(peer, [])
    assert room.say(b"a", wire.PING, b"") == SILENT
    room.hear(b"d", [])
    assert len(room.registry.silenced) == 3
    assert [room.say(peer, wire.PING, b"") == SILENT for peer in (b"a", b"c", b"d", b"b")] == [
        True,
        True,
        True,
        False,
    ]


def test_a_disconnect_ends_the_service(room: Room) -> None:
    room.register("a", 1, peer=b"a")
    assert room.say(b"a", wire.DISCONNECT) == Outcome(kept=True)
    assert room.listed() == {}
    for said in (wire.DISCONNECT, wire.PING, wire.ACKNOWLEDGED):
        assert room.say(b"a", said) == SILENT
    assert room.wait(10) == []


def test_a_disconnect_before_a_registration(room: Room) -> None:
    assert room.say(b"a", wire.DISCONNECT) == Outcome()
    assert room.register("a", 1, peer=b"a") == SILENT


def test_after_a_disconnect_a_service_registers_on_a_new_connection(room: Room) -> None:
    """The catalog has lost its services: a beat gets a disconnect, and the service comes back."""
    assert room.say(b"old", wire.HEARTBEAT, b"a") == Outcome(DISCONNECT, "unexpected")
    assert word(room.register("a", 1, peer=b"new")) == wire.APPROVED
    assert room.say(b"new", wire.HEARTBEAT, b"a").reply == Command(wire.ACKNOWLEDGED)


def test_floods_of_registrations_leave_room_for_others() -> None:
    room = Room(services=10, services_per_host=4)
    assert word(room.register("mine", 1, host=ELSEWHERE)) == wire.APPROVED
    outcomes = [room.register(f"s{n}", n + 1) for n in range(100)]
    assert [word(outcome) for outcome in outcomes[:4]] == [wire.APPROVED] * 4
    assert {denied(outcome) for outcome in outcomes[4:]} == {"services of one host"}
    assert word(room.register("yours", 2, host=ELSEWHERE)) == wire.APPROVED
    for n in range(4):
        room.register(f"t{n}", n + 1, host=f"10.9.1.{n}")
    assert denied(room.register("late", 9, host="10.9.2.1")) == "services full"
    assert len(room.listed()) == 10
    room.wait(7)
    assert word(room.register("late", 9, host="10.9.2.1")) == wire.APPROVED


@pytest.mark.parametrize("letter", ["é", "x", '"', "日", "🚌"])
def test_the_longest_reply(letter: str) -> None:
    room = Room(services=5, all_entry_bytes=600, text_bytes=40)
    most = 40 // len(letter.encode()) - 1
    names = [str(n) + letter * most for n in range(9)]
    approved = [word(room.register(name, 1)) == wire.APPROVED for name in names]
    assert sum(approved) == 5
    assert len(room.registry.services.every()) <= 600 + 5 * (6 + 3 * 40)


def test_the_size_of_all_services_is_bounded() -> None:
    room = Room(all_entry_bytes=1100)
    assert word(room.register("a", 1, more="x" * 400)) == wire.APPROVED
    assert denied(room.register("b", 2, more="x" * 400)) == "services of one host"
    assert word(room.register("b", 2, host="10.0.0.2", more="x" * 400)) == wire.APPROVED
    assert denied(room.register("c", 3, host="10.0.0.3", more="x" * 400)) == "services full"
    assert denied(room.req(wire.UPDATE, {"name": "a", "more": "x" * 800})) == "services full"
    assert denied(room.register("a", 1, more="x" * 800)) == "services full"
    assert room.listed()["a"]["more"] == "x" * 400
    assert word(room.req(wire.UPDATE, {"name": "b", "more": ""}, host="10.0.0.2")) == wire.ACKNOWLEDGED
    assert word(room.register("c", 3, host="10.0.0.3", more="x" * 400)) == wire.APPROVED


def test_a_service_that_says_only_the_minimum_updates_in_its_own_words(room: Room) -> None:
    """Its interval is told where the catalog changes it, as to all others."""
    told = Command(wire.APPROVED, (b'{"liveliness": 60000.0}',))
    said = {"name": "therm", "ip": "10.1.1.1", "port": 5300, "function": "temp", "heartbeat": 600}
    assert room.req(wire.REGISTRATION, said).reply == told
    for change in ({"heartbeat": 2}, {"port": 5301}, {"ip": "10.1.1.2", "port": 5302}):
        assert room.req(wire.UPDATE, {"name": "therm", **change}).reply == Command(wire.ACKNOWLEDGED)
    found = room.listed()["therm"]
    assert (found["interfaces"], found["liveliness"]) == ({"router": {"ip": "10.1.1.2", "port": 5302}}, 2000)
    slow = room.req(wire.UPDATE, {"name": "therm", "heartbeat": 0.01})
    assert slow.reply == Command(wire.ACKNOWLEDGED, (b'{"liveliness": 250.0}',))
    room.register("oven", 5310, ip="10.9.9.9")  # its own field of this name
    room.req(wire.UPDATE, {"name": "oven", "port": 2, "heartbeat": 9})
    assert room.listed()["oven"]["interfaces"]["router"]["port"] == 5310
