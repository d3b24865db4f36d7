"""Announcements are read as they were said, by whom, and each once."""

import pytest

from bus.announcements import (
    FORGET_S,
    NOTE,
    RELAYED,
    SPEAKERS_MAX,
    Announcement,
    Clocks,
    announce,
    json_of,
    off_trunk,
    on_trunk,
    read,
    relayed,
    said,
    unproven,
)
from bus.keys import Keyring
from bus.wire.frame import PUB, pack

FIELDS = {"gateway": "gw-a", "time_ns": 7, "x": [1]}
FRAME = announce((*NOTE, 5), json_of(FIELDS))


def test_an_announcement_is_read_as_it_was_said_also_by_way_of_a_trunk_and_a_broker() -> None:
    assert read(FRAME) == Announcement("gw-a", 7, (5,), FIELDS)
    assert off_trunk(on_trunk(FRAME)) == FRAME
    assert relayed(FRAME)[0] == RELAYED
    assert said(relayed(FRAME)) == FRAME


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"[" * 2000, b"\xff", b'{"gateway":1}', b'{"gateway":"a","time_ns":"1"}', b'{"time_ns":1}'],
)
def test_what_has_another_form_is_none(data: bytes) -> None:
    assert read(pack(PUB, NOTE, data)) is None
    assert read(pack(PUB, (1, 2), json_of(FIELDS))) is None
    assert read(data) is None


def test_a_tag_proves_tokens_and_data_and_any_of_several_keys_will_do() -> None:
    old, new = Keyring([b"1" * 32]), Keyring([b"2" * 32, b"1" * 32])
    signed = announce((*NOTE, 5), json_of(FIELDS), old)
    assert unproven(signed, new) == ""
    assert unproven(said(relayed(signed)), new) == ""
    assert unproven(signed, Keyring([b"3" * 32])) == "forged"
    assert unproven(signed.replace(b"gw-a", b"gw-b"), new) == "forged"
    assert unproven(FRAME, new) == "unsigned"


def test_each_counts_once_and_none_that_is_older_until_its_speaker_is_forgotten() -> None:
    for clocks, again in ((Clocks(), True), (Clocks(forgets=False), False)):
        assert [clocks.take("a", time_ns, 0.0) for time_ns in (5, 5, 4, 6)] == [True, False, False, True]
        assert not clocks.take("a", 1, FORGET_S)
        assert clocks.take("a", 1, FORGET_S + 1) == again


def test_speakers_are_bounded_and_those_that_were_long_silent_make_room() -> None:
    clocks = Clocks()
    assert all(clocks.take(str(number), 1, 0.0) for number in range(SPEAKERS_MAX))
    assert not clocks.take("more", 1, 1.0)
    assert clocks.take("1", 2, FORGET_S)
    assert clocks.take("more", 1, FORGET_S + 1)
    assert clocks.take("0", 1, FORGET_S + 1)
