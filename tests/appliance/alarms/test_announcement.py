"""Announcements of alarms are read as they were said, and nothing else is one."""

import json

import pytest

from appliance.alarms.announcement import KEY_TOKENS_MAX, PATTERN, AlarmSaid, announced, heard, presence
from appliance.alarms.states import NUMBER_MAX, State
from bus.announcements import unproven
from bus.errors import FrameError
from bus.keys import Keyring
from bus.wire.frame import PUB, frame_bytes, pack
from bus.wire.pattern import token

STATE = State(3, "acknowledged", "fridge/1", 10**18, "9 is above 8", "ann", frozenset({"mail"}))


def test_a_state_and_a_presence_are_heard_as_said() -> None:
    assert heard(announced("gw-a", "warm", (7, 1), STATE)) == AlarmSaid("gw-a", token("warm"), (7, 1), STATE)
    assert heard(presence("gw-a", 7)) == AlarmSaid("gw-a", time_ns=7)


def test_words_from_outside_are_fit_for_a_header_a_metric_and_a_service_manager() -> None:
    words = 'a\nWATCHDOG=trigger\r\x1b[2J\ud800"<b>'
    record = STATE.as_record() | {"of": words, "cause": words, "by": words, "told": [words]}
    data = json.dumps({"gateway": "gw-a", **record}).encode()
    found = heard(pack(PUB, (*PATTERN, 1), data))
    assert found is not None
    assert found.state is not None
    plain = 'a?WATCHDOG=trigger??[2J?"<b>'
    assert found.state[2::2] == (plain, plain, frozenset({plain}))
    assert found.state.by == STATE.moved("cleared", 1, words).by == plain


def test_the_longest_words_with_the_most_outlets_fit() -> None:
    names = frozenset(f"{number:063d}" for number in range(16))
    long = "\U0001f525" * 256
    assert announced("g" * 63, "a" * 63, (), STATE._replace(of=long, cause=long, by=long, told=names))


def test_words_that_are_too_long_are_cut() -> None:
    long = STATE._replace(of="\u2028" * 256, cause="\u2028" * 256, by="\u2028" * 256)
    frame = announced("gw-a", "warm", (), long)
    assert frame_bytes(frame)
    found = heard(frame)
    assert found is not None
    assert found.state is not None
    assert found.state.version == STATE.version


def test_the_longest_key_is_heard_as_said_and_no_frame_has_room_for_a_longer_one() -> None:
    longest = (7,) * KEY_TOKENS_MAX
    said = heard(announced("gw-a", "warm", longest, STATE))
    assert said is not None
    assert said.key == longest
    with pytest.raises(FrameError, match="256 tokens"):
        announced("gw-a", "warm", (*longest, 7), STATE)


@pytest.mark.parametrize(
    "change",
    [
        {"number": 0}, {"number": NUMBER_MAX}, {"number": "1"}, {"stage": "on"}, {"since_ns": -1},
        {"told": "mail"}, {"of": None}, {"gateway": 1},
    ],
)  # fmt: skip
def test_what_has_another_form_is_no_announcement(change: dict[str, object]) -> None:
    record = {"gateway": "gw-a", **STATE.as_record(), **change}
    assert heard(pack(PUB, (*PATTERN, 1), json.dumps(record).encode())) is None


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"[" * 2000, b"\xff", b'{"gateway": {}}'])
def test_data_that_are_none_are_left_out(data: bytes) -> None:
    assert heard(pack(PUB, PATTERN, data)) is None
    assert heard(pack(PUB, (1, 2), data)) is None
    assert heard(data) is None


def test_with_keys_only_what_is_signed_by_one_of_them_is_proven() -> None:
    old, new = Keyring([b"1" * 32]), Keyring([b"2" * 32, b"1" * 32])
    frame = announced("gw-a", "warm", (7, 1), STATE, old)
    assert heard(frame) == heard(announced("gw-a", "warm", (7, 1), STATE))
    assert unproven(frame, new) == ""
    assert unproven(announced("gw-a", "warm", (7, 1), STATE), new) == "unsigned"
    assert unproven(frame, Keyring([b"3" * 32])) == "forged"
    other_key = frame.replace(token("warm").to_bytes(4, "big"), token("cold").to_bytes(4, "big"), 1)
    assert unproven(other_key, new) == "forged"
    assert unproven(frame.replace(b"ann", b"bob"), new) == "forged"
    assert unproven(presence("gw-a", 7, old), new) == ""
