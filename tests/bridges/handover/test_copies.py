"""How a window matches the copies of a frame: by its key, by its content, and never by what is neither."""

import tracemalloc
from zlib import crc32

from bridges.handover.copies import EarlyCopies
from bridges.handover.heard import BYTES, COUNT
from bridges.handover.outcome import Lag
from bridges.handover.replay import Due
from bridges.handover.sides import SideRules
from bridges.handover.stamps import Stamps
from bridges.handover.window import Window
from bridges.rules import Seen
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from tests.bridges.handover.windows import placeless
from tests.helpers import ROOT

READING, OTHER = pack(1, (7, 1), b"4.5"), pack(1, (7, 1), b"4.6")
OURS, OWN = 1, 5


def every(_: bytes) -> bool:
    return True


def none(_: bytes) -> bool:
    return False


def plain(sides: int = 2, **options: int) -> Window:
    return Window([SideRules(every, every)] * sides, OURS, Seen(), **options)  # type: ignore[arg-type]


def stamping(sides: int = 2) -> Window:
    """Return a window whose sides are trunks. Its `Stamps` have listened for long enough."""
    trunks = [SideRules(every, every, trunk=True)] * sides
    return Window(trunks, OURS, Seen(), Stamps(), lambda: OWN << 32)


def test_a_frame_that_came_out_before_its_original_is_due_where_it_may_yet_come_out() -> None:
    heard = Window([SideRules(every, every), SideRules(none, every), SideRules(every, every)], OURS, Seen())
    assert heard.hear(1, READING, 1000.0) == "pattern"
    assert heard.stats.offered == 0
    assert heard.hear(0, READING, 1000.0) == "standby"
    assert placeless(heard.replay(1000.0)) == [Due(0b100, READING, 8)]


def test_what_is_void_stays_so_when_its_copy_is_heard() -> None:
    heard = plain(3)
    heard.hear(0, READING, 1000.0)
    heard.void("fenced", 1000.0, 1000.0)
    assert heard.hear(1, READING, 1000.1) == "standby"
    assert heard.replay(1000.1) == []
    assert (heard.stats.offered, heard.stats.dropped) == (1, {"fenced": 1})


def test_a_lag_counts_from_the_turn_of_two_seconds_on() -> None:
    lag = Lag()
    lag.note(0.03, 1000.0)
    assert lag.most(1002.0) == 0.03
    lag.note(0.02, 1003.0)
    assert lag.most(1004.0) == 0.02


def test_only_what_was_due_nowhere_else_is_closed_with_its_side() -> None:
    heard = plain(3)
    for number in range(3):
        heard.hear(0, pack(1, (number,)), 1000.0)
    heard.hear(1, pack(1, (2,)), 1000.0)
    heard.revise([SideRules(every, every)] * 2, (0, 1, None), None)
    assert heard.stats.dropped == {"closed": 1}
    assert [due.message for due in heard.replay(1000.0)] == [pack(1, (0,)), pack(1, (1,))]


def test_what_was_heard_without_a_trunk_is_sent_with_a_key_of_our_own_if_one_comes() -> None:
    heard = Window([SideRules(every, every)] * 2, OURS, Seen(), private=lambda: OWN << 32 | 3)
    heard.hear(0, READING, 1000.0)
    heard.revise([SideRules(every, every)] * 2, (0, 1), None)
    assert heard.hear(0, wrap(OTHER, Envelope(OWN, 3)), 1000.0) == "standby"  # nothing has that key yet
    heard.revise([SideRules(every, every), SideRules(every, every, trunk=True)], (0, 1), Stamps())
    assert placeless(heard.replay(1000.0))[0] == Due(0b10, wrap(READING, Envelope(OWN, 3, 8)), 8)


def test_a_frame_without_a_key_is_never_taken_for_one_with_a_key() -> None:
    """Also where a peer has small numbers."""
    heard = plain()
    heard.hear(0, OTHER, 1000.0)
    for number in range(4):
        message = pack(1, (number,))
        assert heard.hear(0, wrap(message, Envelope(0, number)), 1000.0) == "standby"
    assert len(heard.replay(1000.0)) == 5


def test_a_frame_is_stamped_with_the_origin_that_all_share_and_the_number_of_its_content() -> None:
    heard = stamping()
    heard.hear(0, READING, 1000.0)
    key = Envelope(OURS, crc32(READING), 8)
    assert placeless(heard.replay(1000.0)) == [Due(0b10, wrap(READING, key), 8)]


def test_stamps_of_the_active_one_are_counted_and_those_of_others_are_not() -> None:
    number = crc32(READING)
    for origin, following in ((OURS, 1), (7, 0)):
        heard = stamping()
        heard.hear(0, wrap(READING, Envelope(origin, number)), 1000.0)
        heard.hear(1, READING if origin == OURS else wrap(READING, Envelope(origin, number)), 1000.0)
        assert len(heard) == 0
        heard.hear(1, READING, 1000.0)
        expected = Due(0b1, wrap(READING, Envelope(OURS, number + following, 8)), 8)
        assert placeless(heard.replay(1000.0)) == [expected]


def test_a_window_that_does_not_stamp_knows_an_echo_too() -> None:
    assert plain().hear(0, wrap(READING, Envelope(OURS, 3)), 1000.0) == "echo"


def test_a_frame_that_got_the_key_of_its_copy_is_known_by_it() -> None:
    heard, copy = stamping(3), wrap(READING, Envelope(7, 1))
    heard.hear(0, READING, 1000.0)
    assert heard.hear(1, copy, 1000.0) == heard.hear(2, copy, 1000.0) == "standby"
    assert heard.replay(1000.0) == []


def test_a_frame_that_got_the_key_of_its_copy_goes_to_trunks_after_a_blind_time() -> None:
    heard = stamping(3)
    heard.hear(0, READING, 1000.0)
    heard.hear(1, wrap(READING, Envelope(7, 1)), 1000.0)
    heard.void("blind", 1000.0, 1000.0)
    assert [due.sides for due in heard.replay(1000.0)] == [0b100]


def test_a_copy_without_hops_left_hides_no_other_frame_with_its_key() -> None:
    heard = stamping(3)
    heard.hear(0, READING, 1000.0)
    heard.hear(1, wrap(READING, Envelope(7, 1, 0)), 1000.0)
    assert heard.hear(1, wrap(OTHER, Envelope(7, 1)), 1000.0) == "standby"


def test_what_the_active_one_stamped_may_come_from_another_under_another_key() -> None:
    heard = stamping()
    assert heard.hear(0, wrap(READING, Envelope(OURS, 3)), 1000.0) == "echo"
    assert heard.hear(1, wrap(READING, Envelope(7, 1)), 1000.0) == "standby"
    assert heard.replay(1000.0) == []


def test_what_follows_an_echo_on_its_own_side_is_no_copy_of_it() -> None:
    heard = stamping()
    heard.hear(1, wrap(READING, Envelope(OURS, 3)), 1000.0)
    heard.hear(1, READING, 1000.0)
    assert len(heard) == 2
    assert placeless(heard.replay(1000.0)) == [Due(0b1, wrap(READING, Envelope(OURS, crc32(READING), 8)), 8)]


def test_the_number_of_frames_is_bounded_alone_and_their_bytes_begin_anew_after_a_takeover() -> None:
    frames = [pack(1, (number,)) for number in range(4)]
    few, small = plain(count=3), plain(size_bytes=3 * len(frames[0]))
    for _ in range(2):
        for heard in (few, small):
            for frame in frames[:3]:
                heard.hear(0, frame, 1000.0)
            assert [due.message for due in heard.replay(1000.0)] == frames[:3]
    for frame in frames:
        few.hear(0, frame, 1000.0)
    assert [due.message for due in few.replay(1000.0)] == frames[1:]


def test_the_bounds_are_those_of_the_page() -> None:
    assert (
        f"at most {COUNT:,} frames and {BYTES / (1 << 20):g} MiB" in (ROOT / "docs/failover.md").read_text()
    )


def test_each_of_several_equal_frames_has_its_copy() -> None:
    heard = plain()
    for side in (0, 0, 0, 1, 1):
        assert heard.hear(side, READING, 1000.0) == "standby"
    assert placeless(heard.replay(1000.0)) == [Due(0b10, READING, 8)]


def test_what_did_not_get_out_is_known_where_another_sends_it() -> None:
    heard, message = stamping(3), wrap(READING, Envelope(7, 1, 3))
    heard.owe(1, [message], 1000.0)
    heard.owe(2, [message], 1000.0)
    assert heard.hear(2, message, 1000.0) == "standby"
    assert placeless(heard.replay(1000.0)) == [Due(0b10, message, 3)]


def test_frames_without_keys_that_did_not_get_out_are_different_ones() -> None:
    heard = plain()
    heard.owe(1, [READING], 1000.0)
    heard.owe(1, [OTHER], 1000.0)
    assert [due.message for due in heard.replay(1000.0)] == [READING, OTHER]


def test_what_did_not_get_out_without_an_envelope_may_be_sent_by_another_with_one() -> None:
    heard = stamping()
    heard.owe(1, [READING], 1000.0)
    assert heard.hear(1, wrap(READING, Envelope(9, 1)), 1000.0) == "standby"
    assert heard.replay(1000.0) == []


def test_equal_frames_get_the_numbers_of_their_copies_after_a_stall_between_both() -> None:
    """A busy machine stops a gateway for up to some tenths of a second behind the copies that it has read."""
    copies, first = EarlyCopies(Stamps()), crc32(READING)
    copies.advance(1000.0)
    assert copies.take(READING) == first
    numbers = [first + further for further in range(1, 41)]
    for number in numbers:
        copies.heard(READING, number)
    copies.advance(1000.9)
    assert [copies.take(READING) for _ in numbers] == numbers


def test_numbers_before_the_first_one_that_is_heard_after_the_start_are_of_frames_before_that() -> None:
    copies, first = EarlyCopies(Stamps()), crc32(READING)
    copies.advance(1000.0)
    copies.heard(READING, first + 3)
    assert [copies.take(READING) for _ in range(2)] == [first + 3, first + 4]


def test_a_copy_that_comes_just_behind_a_late_frame_is_of_that_one() -> None:
    """So the frame of the copy before it never came, and that one's number went to this frame."""
    copies, first = EarlyCopies(Stamps()), crc32(READING)
    copies.advance(1000.0)
    copies.heard(READING, first)
    copies.advance(1000.5)
    assert copies.take(READING) == first
    copies.advance(1000.6)
    copies.heard(READING, first + 1)
    assert copies.take(READING) == first + 2


def test_as_many_contents_are_known_by_their_early_copies_as_the_bound_allows() -> None:
    copies, most = EarlyCopies(Stamps(), cap=12), 0
    for number in range(100):
        copies.advance(1000.0 + number / 1000)
        message = pack(1, (number,))
        copies.heard(message, crc32(message))
        most = max(most, len(copies))
    assert most == 12


def test_copies_of_large_messages_that_come_early_are_known_and_not_kept() -> None:
    copies, stamped = EarlyCopies(Stamps()), Stamps()
    for now in (-20.0, 0.0):
        copies.advance(now)
    tracemalloc.start()
    for number in (*range(100), *range(100)):
        message = number.to_bytes(2, "big") * 50_000
        copies.heard(message, stamped.take(message))
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept_bytes < 1 << 20
    message = (7).to_bytes(2, "big") * 50_000
    assert [copies.take(message) - crc32(message) for _ in range(3)] == [0, 1, 2]
