"""The times of a registration, each at its moment and just before it."""

import json
from typing import Any

import pytest

from devices.dbp.catalog import wire
from devices.dbp.catalog.wire import Command, Received
from devices.dbp.nodes.registering import (
    ANSWER_S,
    DENIED_MAX_S,
    DENIED_MIN_S,
    NOTHING,
    Registration,
    RegistrationState,
    Step,
)
from tests.devices.dbp.nodes.conversation import (
    APPROVED,
    BEAT,
    DISCONNECT,
    listed,
    registers,
    registration,
)

DENIED = Received(wire.DENIED, False)


def agreed(interval_ms: Any) -> Registration:
    made = registration()
    made.open(0.0)
    made.heard(Received(wire.APPROVED, False, fields={"liveliness": interval_ms}), 0.0)
    return made


def test_an_answer_is_awaited_for_two_seconds() -> None:
    assert ANSWER_S == 2


@pytest.mark.parametrize(
    ("agreed_ms", "interval_s"),
    [
        (9.9, 0.01),
        (10, 0.01),
        (11, 0.011),
        (3_600_000, 3600),
        (3_600_001, 3600),
        (10**400, 3600),
        (0, 1),
        (-5, 1),
        ("9", 1),
    ],
)
def test_the_interval_is_at_least_10_ms_and_at_most_an_hour(agreed_ms: Any, interval_s: float) -> None:
    assert agreed(agreed_ms).interval_s == interval_s


def test_pauses_after_denials_double_up_to_30_seconds_and_begin_anew_when_it_was_listed() -> None:
    made = registration()
    made.open(0.0)
    pauses, now_s = list[float](), 0.0
    for _ in range(7):
        made.heard(DENIED, now_s)
        pauses.append(next(half / 2 for half in range(1, 99) if registers(made.tick(now_s + half / 2))))
        now_s += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert (DENIED_MIN_S, DENIED_MAX_S) == (1, 30)
    made.heard(APPROVED, now_s)
    made.heard(DISCONNECT, now_s)
    made.heard(DENIED, now_s)
    assert made.tick(now_s + 0.99) == NOTHING
    assert registers(made.tick(now_s + 1))


def test_a_denial_without_reasons_is_one_all_the_same() -> None:
    made = listed()
    assert made.heard(DENIED, 0.5).answer == ("denied",)
    made = registration()
    made.open(0.0)
    made.heard(DENIED, 0.0)
    assert made.reasons == ("denied",)
    made.open(1.0)
    made.heard(APPROVED, 1.0)
    assert not made.reasons


def test_who_is_listed_again_beats_in_the_interval_that_it_offers() -> None:
    made = agreed(250)
    made.heard(DISCONNECT, 10.0)
    made.heard(APPROVED, 10.0)
    assert made.interval_s == 1
    assert made.tick(10.99) == NOTHING
    assert made.tick(11.0) == Step(beat=True)


def test_a_beat_is_due_an_interval_after_whatever_was_said() -> None:
    made = listed()
    made.heard(Received(wire.PING, False), 0.5)
    assert made.tick(1.49) == NOTHING
    assert made.tick(1.5) == Step(beat=True)
    made.datagram(BEAT, 1.5)
    made.update({"topics": []}, 2.0)
    assert made.tick(2.99) == NOTHING
    assert made.tick(3.0) == Step(beat=True)


def test_another_interval_counts_from_its_answer_on() -> None:
    made = listed()
    made.heard(Received(wire.ACKNOWLEDGED, False, fields={"liveliness": 4000}), 0.5)
    assert made.tick(4.49) == NOTHING
    assert made.tick(4.5) == Step(beat=True)


def test_an_interval_that_is_no_number_changes_nothing() -> None:
    made = listed()
    made.heard(Received(wire.ACKNOWLEDGED, False, fields={"liveliness": True}), 0.5)
    assert made.tick(0.99) == NOTHING
    assert made.tick(1.0) == Step(beat=True)


def test_a_beat_over_tcp_takes_the_place_of_one_by_udp() -> None:
    made = listed()
    assert made.tick(2.0) == Step(say=(Command(wire.HEARTBEAT, (b"Rohan",)),))
    made.datagram(BEAT, 2.0)
    assert made.tick(2.99) == NOTHING
    assert made.tick(3.0) == Step(beat=True)


def test_a_second_disconnect_within_an_interval_waits_for_its_end() -> None:
    made = listed()
    assert registers(made.heard(DISCONNECT, 1.0))
    assert made.heard(DISCONNECT, 1.99) == Step(renew=True)
    assert made.state is RegistrationState.ASKING
    assert made.tick(1.99) == NOTHING
    assert registers(made.tick(2.0))
    assert registers(made.heard(DISCONNECT, 2.0))


@pytest.mark.parametrize("texts", [(), ("Mordor",), ("Rohan", "Rohan")])
def test_a_datagram_with_another_name_is_nothing(texts: tuple[str, ...]) -> None:
    made = listed()
    assert made.datagram(Received(wire.DISCONNECT, False, texts), 1.0) == NOTHING
    assert made.state is RegistrationState.LISTED
    made.datagram(Received(wire.HEARTBEAT, False, texts), 1.9)
    assert made.tick(2.0).say, "nothing was heard of the catalog"


def test_who_is_not_listed_takes_no_datagram_and_says_no_farewell() -> None:
    made = registration()
    made.open(0.0)
    assert made.datagram(BEAT._replace(word=wire.DISCONNECT), 1.0) == NOTHING
    assert made.close() == NOTHING
    assert made.state is RegistrationState.CLOSED


@pytest.mark.parametrize("word", [wire.PONG, wire.APPROVED, wire.INFO_REPLY])
def test_other_words_of_the_catalog_are_signs_of_life_and_no_answers(word: bytes) -> None:
    made = listed()
    assert made.heard(Received(word, False), 1.9) == NOTHING
    made.tick(2.0)
    assert made.tick(3.8).beat, "it was heard at 1.9 s, so the catalog is not suspect before 3.9 s"


def test_who_asks_takes_only_the_answer_to_that() -> None:
    made = registration()
    made.open(0.0)
    for word in (wire.PING, wire.ACKNOWLEDGED, wire.PONG):
        assert made.heard(Received(word, False), 0.5) == NOTHING
    assert made.state is RegistrationState.ASKING


def test_it_is_closed_before_it_is_opened() -> None:
    made = registration()
    assert made.state is RegistrationState.CLOSED
    assert made.tick(100.0) == made.heard(APPROVED, 100.0) == NOTHING
    assert made.interval_s == 1


def test_it_offers_its_interval_in_milliseconds() -> None:
    (command,) = Registration("Rohan", {"liveliness": 7, "name": "x"}, 0.25).open(0.0).say
    assert json.loads(command.body[0]) == {"liveliness": 250, "name": "Rohan"}


def _deep(levels: int) -> Any:
    return [_deep(levels - 1)] if levels else 1


UNHEARD = [
    {"topics": [f"t{number}" for number in range(1100)]},
    {"function": "x" * 20_000},
    {"more": _deep(16)},
    {"more": float("nan")},
    {"more": {1, 2}},
    {"more": b"x"},
]
"""Fields with which a catalog hears no command: it drops the message, and answers its peer no more."""


@pytest.mark.parametrize("fields", UNHEARD)
def test_what_a_catalog_would_never_answer_is_denied_at_once(fields: dict[str, Any]) -> None:
    made = Registration("Rohan", fields, 1.0)
    assert made.open(0.0) == NOTHING
    assert made.state is RegistrationState.DENIED
    assert made.reasons[0].startswith(("json: ", "size: "))
    assert made.tick(DENIED_MIN_S - 0.01) == made.tick(DENIED_MIN_S) == NOTHING
    other = listed()
    assert other.unfit(fields) == made.reasons[0]
    assert other.unfit({"topics": ["x"]}) == ""


def test_an_update_that_is_too_much_with_what_is_registered_is_told() -> None:
    made = listed()
    made.update({"one": "x" * 9000}, 0.0)
    made.heard(Received(wire.ACKNOWLEDGED, False), 0.0)
    assert made.unfit({"other": "x" * 9000}).startswith("size: ")
    assert made.unfit({"one": "x" * 9000}) == ""


def test_a_denied_update_changes_nothing_and_the_answer_to_a_beat_is_none_to_an_update() -> None:
    made = listed()
    assert made.tick(2.0).say == (Command(wire.HEARTBEAT, (b"Rohan",)),)
    made.update({"topics": 7}, 2.0)
    made.update({"topics": ["hay"]}, 2.0)
    assert made.heard(Received(wire.ACKNOWLEDGED, False), 2.1).answer is None
    assert made.heard(DENIED._replace(texts=("topics",)), 2.1).answer == ("topics",)
    assert "topics" not in made.fields
    assert made.heard(Received(wire.ACKNOWLEDGED, False), 2.1).answer == ()
    assert made.fields["topics"] == ["hay"]


def test_a_new_registration_has_the_changes_that_nobody_answered() -> None:
    made = listed()
    made.update({"topics": ["hay"]}, 1.0)
    step = made.heard(DISCONNECT, 2.0)
    assert registers(step)
    assert json.loads(step.say[0].body[0])["topics"] == ["hay"]
