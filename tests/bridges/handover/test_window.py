"""The bounds and filters of the window, and what it sends at a takeover."""

from zlib import crc32

import pytest

from bridges.handover.entrance import AGE_S, spanning
from bridges.handover.outcome import Lag
from bridges.handover.replay import Due
from bridges.handover.sides import SideRules
from bridges.handover.stamps import Stamps
from bridges.handover.window import Window
from bridges.rules import Seen
from bus.leases.wire import LEASE_MAX_MS, LEASE_MS
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack
from tests.bridges.handover.windows import OTHER, READING, every, placeless


def none(_: bytes) -> bool:
    return False


def window(sides: int = 2, **options: float) -> Window:
    return Window([SideRules(every, every)] * sides, 1, Seen(), **options)  # type: ignore[arg-type]


def test_the_window_knows_how_long_frames_have_lately_taken() -> None:
    heard, now = window(), 1000.0
    assert heard.lag_s(now) == 0
    heard.hear(0, READING, now)
    heard.hear(1, READING, now + 0.03)
    heard.hear(0, OTHER, now + 1)
    heard.hear(1, OTHER, now + 1.001)
    assert heard.lag_s(now + 1.5) == pytest.approx(0.03)
    assert heard.lag_s(now + 3.5) == pytest.approx(0.03)
    assert heard.lag_s(now + 5.6) == 0
    heard.hear(0, READING, now + 10)  # nobody sends it, which is no lag
    assert heard.lag_s(now + 10.5) == 0


def test_what_is_held_back_on_a_trunk_is_no_lag() -> None:
    heard = Window([SideRules(every, every), SideRules(every, every, trunk=True)], 1, Seen())
    message = wrap(READING, Envelope(5, 1))
    heard.hear(0, message, 1000.0)
    heard.hear(1, message, 1000.05)
    assert heard.stats.dropped == {"heard": 1}
    assert heard.lag_s(1000.1) == 0


def test_what_came_out_is_not_sent_and_the_rest_is_in_order() -> None:
    heard = window()
    frames = [pack(1, (7, n)) for n in range(6)]
    for frame in frames:
        assert heard.hear(0, frame, 1.0) == "standby"
    for frame in (frames[0], frames[3]):
        heard.hear(1, frame, 1.1)
    assert [due.message for due in heard.replay(1.2)] == [frames[n] for n in (1, 2, 4, 5)]
    assert heard.stats.balance() == 0
    assert heard.stats.dropped == {"heard": 2}
    assert heard.replay(1.3) == []


def test_the_order_of_hearing_does_not_matter_and_equal_readings_are_counted() -> None:
    heard = window()
    for side in (1, 0, 0, 1, 1, 0, 0):
        heard.hear(side, READING, 1.0)
    assert [(due.sides, due.message) for due in heard.replay(1.0)] == [(0b10, READING)]


@pytest.mark.parametrize("origin", [1, 77], ids=["stamped alike", "stamped with an own origin"])
@pytest.mark.parametrize("first", ["copy", "original"])
def test_a_device_without_envelopes_on_a_trunk_is_heard_before_or_after_its_copy(
    origin: int, first: str
) -> None:
    heard = Window([SideRules(every, every, trunk=True)] * 2, 1, Seen(), Stamps(), lambda: 5 << 32)
    copy, original = (0, wrap(READING, Envelope(origin, crc32(READING)))), (1, READING)
    for side, message in (copy, original) if first == "copy" else (original, copy):
        assert heard.hear(side, message, 1000.0) in ("standby", "echo")
    assert len(heard) == 0
    heard.hear(1, READING, 1000.1)
    assert [due.sides for due in heard.replay(1000.2)] == [1]


def test_what_another_appliance_sent_on_a_trunk_is_not_taken_for_its_echo() -> None:
    heard = Window([SideRules(every, every, trunk=True)] * 2, 1, Seen(), Stamps(), lambda: 5 << 32)
    heard.hear(0, OTHER, 1000.0)
    heard.hear(1, OTHER, 1000.0)
    assert [due.sides for due in heard.replay(1000.1)] == [2, 1]


def test_a_forged_key_without_hops_left_keeps_no_frame_from_the_takeover() -> None:
    sides = [SideRules(every, every, trunk=True), SideRules(every, every)]
    heard = Window(sides, 1, Seen(), Stamps(), lambda: 5 << 32)
    assert heard.hear(0, wrap(OTHER, Envelope(7, 1, 0)), 1000.0) == "standby"
    assert heard.hear(0, wrap(OTHER, Envelope(7, 1, 0)), 1000.0) == "duplicate"
    assert heard.hear(0, wrap(READING, Envelope(7, 1)), 1000.0) == "standby"
    due = heard.replay(1000.1)
    assert [(one.sides, one.hops < 0) for one in due] == [(2, True), (2, False)]
    assert take_apart(due[1].message).content == READING


def test_with_three_sides_only_those_that_missed_it_get_it() -> None:
    heard = window(3)
    heard.hear(0, READING, 1.0)
    heard.hear(2, READING, 1.0)
    assert [due.sides for due in heard.replay(1.0)] == [0b010]


def test_a_side_that_takes_nothing_in_still_tells_that_a_frame_came_out() -> None:
    sides = [SideRules(every, every), SideRules(none, every)]
    heard = Window(sides, 1, Seen())
    assert heard.hear(1, READING, 1.0) == "pattern"  # heard there before its original
    heard.hear(0, READING, 1.0)
    assert heard.replay(1.0) == []
    assert len(heard) == 0


def test_nothing_is_kept_for_a_side_where_the_active_one_is_not_heard() -> None:
    heard = Window([SideRules(every, every), SideRules(every, every, deaf=True)], 1, Seen())
    heard.hear(0, READING, 1.0)
    assert heard.replay(1.0) == []


@pytest.mark.parametrize(("deaf", "anew"), [(True, False), (False, True)])
def test_what_came_in_our_own_turn_is_due_there_too_until_another_has_its_turn(
    deaf: bool, anew: bool
) -> None:
    sides = [SideRules(every, every, anew=anew), SideRules(none, every, deaf=deaf)]
    heard = Window(sides, 1, Seen())
    heard.pause()
    heard.hear(0, READING, 1.0)
    heard.hear(0, OTHER, 1.1)
    assert [(one.sides, one.message) for one in heard.replay(1.2)] == [(2, READING), (2, OTHER)]
    heard.pause()
    heard.hear(0, READING, 2.0)
    heard.concede()
    heard.hear(0, OTHER, 2.1)
    assert heard.replay(2.2) == []
    assert len(heard) == 0
    assert heard.stats.dropped == {"unheard": 1}
    assert heard.stats.balance() == 0


def test_what_is_conceded_on_one_side_is_due_on_the_others_all_the_same() -> None:
    sides = [SideRules(every, every), SideRules(every, every), SideRules(every, every, deaf=True)]
    heard = Window(sides, 1, Seen())
    heard.pause()
    heard.hear(0, READING, 1.0)
    places = [2, 1, 0]  # the sides in another order
    heard.revise(list(reversed(sides)), places, None)
    heard.concede()
    assert [one.sides for one in heard.replay(1.1)] == [0b010]
    assert heard.stats.dropped == {}


@pytest.mark.parametrize("copy_first", [True, False])
@pytest.mark.parametrize("trunk", [True, False])
def test_nor_where_its_copy_on_a_third_side_comes_before_the_original(trunk: bool, copy_first: bool) -> None:
    far = SideRules(every if trunk else none, every, trunk=trunk)
    sides = [SideRules(every, every), far, SideRules(every, every, deaf=True)]
    heard = Window(sides, 1, Seen(), Stamps() if trunk else None)
    heard.advance(0.0)
    heard.advance(20.0)
    copy = wrap(READING, Envelope(1, crc32(READING))) if trunk else READING
    said = [(0, READING), (1, copy)]
    for side, message in reversed(said) if copy_first else said:
        heard.hear(side, message, 20.0)
    assert heard.replay(20.0) == []
    assert heard.stats.queued == 0


def test_the_window_is_bounded_in_number_bytes_and_age_and_counts_what_it_gives_up() -> None:
    heard = window(count=10, size_bytes=200)
    for number in range(50):
        heard.hear(0, pack(1, (number,), b"x" * 12), 1.0)
    assert len(heard) == 10
    heard.advance(2.9)
    assert heard.stats.dropped == {"full": 40}
    heard.advance(3.1)
    assert heard.stats.dropped == {"full": 40, "stale": 10}


def test_the_window_spans_a_takeover_after_the_longest_lease() -> None:
    """A late machine, whose lease has grown, is late at the takeover too."""
    assert spanning(LEASE_MS) == AGE_S
    heard = window(age_s=spanning(LEASE_MAX_MS))
    heard.hear(0, READING, 1.0)
    assert len(heard.replay(1.0 + 1.9 * LEASE_MAX_MS / 1000)) == 1
    assert len(heard) == heard.stats.balance() == heard.stats.queued == 0


def test_what_is_no_frame_is_malformed() -> None:
    heard = window()
    for junk in (b"", b"x", READING[:-1], b"\xe1" * 20):
        assert heard.hear(0, junk, 1.0) == "malformed"


def test_a_message_that_is_no_frame_waits_for_sides_that_carry_it_only() -> None:
    bus, can = SideRules(every, every, opaque=True), SideRules(every, lambda content: content == READING)
    heard = Window([bus, can, bus._replace(trunk=True)], 1, Seen())
    assert heard.hear(1, b"hello", 1000.0) == "malformed"
    assert heard.hear(2, b"\xe1\x08\xf0\x05" + bytes(9), 1000.0) == "malformed"
    assert heard.hear(0, b"hello", 1000.0) == "standby"
    assert heard.hear(2, wrap(b"hello", Envelope(5, 1)), 1000.0) == "standby"
    assert heard.hear(2, wrap(b"again", Envelope(5, 2)), 1000.0) == "standby"
    assert [(due.sides, due.message) for due in heard.replay(1000.0)] == [(1, b"again")]
    refusing = Window([bus._replace(inward=none), bus._replace(outward=none)], 1, Seen())
    assert refusing.hear(0, b"hello", 1000.0) == "no frame"
    assert refusing.hear(0, READING, 1000.0) == "pattern"


def test_what_was_heard_in_a_blind_time_still_goes_to_trunks_if_it_has_a_key() -> None:
    trunk, plain = SideRules(every, every, trunk=True), SideRules(every, every)
    heard = Window([plain, trunk, plain], 1, Seen(), Stamps())
    heard.hear(1, wrap(READING, Envelope(5, 1)), 1000.0)  # due on plain sides only
    heard.hear(0, wrap(OTHER, Envelope(5, 2)), 1000.0)
    heard.hear(0, pack(1, (7, 1), b"4.7"), 1000.0)  # as we would stamp it, nobody knows it
    heard.void("blind", 1000.0, 1000.0)
    assert [(due.sides, due.message) for due in heard.replay(1000.1)] == [
        (0b10, wrap(OTHER, Envelope(5, 2, 7)))
    ]
    assert heard.stats.dropped == {"blind": 2}
    assert heard.stats.balance() == 0


def stamping(sides: int = 2) -> Window:
    return Window([SideRules(every, every, trunk=True)] * sides, 1, Seen(), Stamps(), lambda: 5 << 32)


@pytest.mark.parametrize(("hops", "left"), [(8, 7), (1, 0), (0, -1)])
def test_what_is_sent_at_a_takeover_has_spent_a_hop(hops: int, left: int) -> None:
    heard = stamping()
    heard.hear(0, wrap(READING, Envelope(7, 1, hops)), 1000.0)
    assert placeless(heard.replay(1000.0)) == [Due(0b10, wrap(READING, Envelope(7, 1, max(0, left))), left)]


def test_what_came_without_an_envelope_has_all_its_hops() -> None:
    heard = stamping()
    heard.advance(1000.0)
    heard.hear(0, READING, 1000.0)
    assert placeless(heard.replay(1000.0)) == [Due(0b10, wrap(READING, Envelope(5, 0, 8)), 8)]
    plain = window()
    plain.hear(0, READING, 1000.0)
    assert placeless(plain.replay(1000.0)) == [Due(0b10, READING, 8)]


def test_what_came_without_an_envelope_goes_on_with_that_of_its_copy() -> None:
    heard = stamping(3)
    heard.hear(0, READING, 1000.0)
    heard.hear(1, wrap(READING, Envelope(7, 1, 6)), 1000.0)
    assert placeless(heard.replay(1000.0)) == [Due(0b100, wrap(READING, Envelope(7, 1, 5)), 5)]


def test_what_did_not_get_out_is_sent_as_it_is() -> None:
    heard, message = stamping(3), wrap(READING, Envelope(7, 1, 3))
    heard.owe(1, [message], 1000.0)
    heard.owe(2, [message], 1000.0)
    assert (heard.stats.offered, heard.stats.queued) == (1, 1)
    assert placeless(heard.replay(1000.0)) == [Due(0b110, message, 3)]
    assert heard.stats.balance() == heard.stats.queued == 0


def test_what_did_not_get_out_without_an_envelope_is_sent_so_by_a_window_that_does_not_stamp() -> None:
    plain, heard = window(), stamping()
    for one in (plain, heard):
        one.owe(1, [READING], 1000.0)
    assert placeless(plain.replay(1000.0)) == [Due(0b10, READING, 8)]
    assert placeless(heard.replay(1000.0)) == [Due(0b10, wrap(READING, Envelope(5, 0, 8)), 8)]


@pytest.mark.parametrize(("origin", "left"), [(1, 0), (5, 0), (7, 1)], ids=["ours", "our own", "another's"])
def test_what_we_stamped_and_could_not_send_may_come_from_another_under_another_key(
    origin: int, left: int
) -> None:
    heard = stamping()
    heard.owe(1, [wrap(READING, Envelope(origin, 1))], 1000.0)
    heard.hear(1, wrap(READING, Envelope(9, 1)), 1000.0)
    assert len([due for due in heard.replay(1000.0) if due.sides == 0b10]) == left


def test_a_lag_is_remembered_for_two_to_four_seconds() -> None:
    for now, expected in ((1001.9, 0.03), (1002, 0.03), (1003.9, 0.03), (1004, 0), (1007, 0)):
        lag = Lag()
        lag.note(0.03, 1000.0)
        lag.note(0.02, 1000.0)
        assert lag.most(now) == expected, now
    lag.note(0.01, 1007.0)
    assert lag.most(1009.0) == 0.01
    lag.note(0.02, 1009.0)
    assert lag.most(1009.0) == 0.02


def test_frames_are_kept_that_just_fit() -> None:
    frames = [pack(1, (number,), b"x" * 12) for number in range(4)]
    heard = window(size_bytes=3 * len(frames[0]))
    for frame in frames[:3]:
        heard.hear(0, frame, 1.0)
    assert len(heard) == 3
    heard.advance(3.0)
    assert len(heard) == 3
    heard.hear(0, frames[3], 3.0)
    assert [due.message for due in heard.replay(3.0)] == frames[1:]
    heard.hear(0, frames[0], 3.0)
    assert len(heard) == 1


def test_what_is_void_is_not_sent_and_its_copies_are_known_for_a_quarter_of_a_second() -> None:
    heard = window()
    heard.hear(0, READING, 1000.0)
    heard.hear(0, OTHER, 1000.1)
    heard.void("fenced", 1000.0, 1000.2)
    assert heard.stats.dropped == {"fenced": 1}
    heard.advance(1000.45)
    assert len(heard) == 2
    assert heard.hear(1, READING, 1000.45) == "standby"
    assert [due.message for due in heard.replay(1000.45)] == [OTHER]
    assert heard.stats.balance() == 0
    heard.hear(0, READING, 1001.0)
    heard.void("fenced", 1001.0, 1001.0)
    heard.advance(1001.3)
    assert len(heard) == 0


def test_a_side_that_goes_takes_what_was_due_there() -> None:
    heard = window(3)
    heard.hear(0, READING, 1000.0)
    heard.hear(1, READING, 1000.0)
    heard.hear(0, OTHER, 1000.0)
    heard.revise([SideRules(every, every)] * 2, (0, 1, None), None)
    assert heard.stats.dropped == {"closed": 1}
    assert placeless(heard.replay(1000.0)) == [Due(0b10, OTHER, 8)]
    assert heard.stats.balance() == 0
    heard.hear(0, READING, 1000.0)
    heard.revise([SideRules(every, every)] * 2, (1, 0), None)
    assert placeless(heard.replay(1000.0)) == [Due(0b01, READING, 8)]


def test_what_was_heard_before_there_was_a_trunk_gets_a_key_when_one_comes() -> None:
    heard, trunk = Window([SideRules(every, every)] * 2, 1, Seen(), private=lambda: 5 << 32), Stamps()
    trunk.advance(1000.0)
    heard.hear(0, READING, 1000.0)
    heard.revise([SideRules(every, every), SideRules(every, every, trunk=True)], (0, 1), trunk)
    assert heard.hear(1, wrap(READING, Envelope(5, 0)), 1000.0) == "standby"
    assert heard.replay(1000.0) == []
    heard.hear(0, wrap(OTHER, Envelope(7, 1)), 1000.0)
    heard.revise([SideRules(every, every), SideRules(every, every, trunk=True)], (0, 1), trunk)
    assert placeless(heard.replay(1000.0)) == [Due(0b10, wrap(OTHER, Envelope(7, 1, 7)), 7)]


def test_a_frame_with_the_smallest_origin_and_sequence_is_known_by_its_key_like_any_other() -> None:
    """The peer chooses its numbers: zeros are a key too, also while the sides change."""
    trunks, stamps = [SideRules(every, every, trunk=True)] * 3, Stamps()
    stamps.advance(1000.0)
    heard = Window(trunks, 1, Seen(), stamps, private=lambda: 5 << 32)
    zero = wrap(READING, Envelope(0, 0))
    heard.hear(0, zero, 1000.0)
    heard.revise(trunks, (0, 1, 2), stamps)
    assert heard.hear(1, zero, 1000.0) == "standby"
    assert heard.hear(1, zero, 1000.0) == "duplicate"
    assert placeless(heard.replay(1000.0)) == [Due(0b100, wrap(READING, Envelope(0, 0, 7)), 7)]


def test_a_frame_with_one_hop_left_is_known_by_its_key_when_its_copy_comes() -> None:
    trunks, stamps = [SideRules(every, every, trunk=True)] * 2, Stamps()
    stamps.advance(1000.0)
    heard = Window(trunks, 1, Seen(), stamps)
    heard.hear(0, wrap(READING, Envelope(7, 1, 1)), 1000.0)
    assert heard.hear(1, wrap(READING, Envelope(7, 1, 0)), 1000.0) == "standby"
    assert heard.replay(1000.0) == []


def test_what_a_side_may_not_bring_is_sent_to_none() -> None:
    heard = Window([SideRules(every, every), SideRules(none, every), SideRules(every, every)], 1, Seen())
    assert heard.hear(1, READING, 1000.0) == "pattern"
    assert heard.replay(1000.0) == []
    assert heard.stats.offered == 0


def test_equal_readings_of_two_sensors_both_go_to_the_side_that_takes_them() -> None:
    """Neither sensor's side takes frames, so what comes from there is never the copy of another's."""
    sensor = SideRules(every, none)
    heard = Window([sensor, sensor, SideRules(every, every)], 1, Seen())
    heard.hear(1, READING, 1000.0)
    heard.hear(0, READING, 1000.0)
    assert placeless(heard.replay(1000.0)) == [Due(0b100, READING, 8)] * 2
