"""The gateway's end of the I2C mailbox, access by access; times are exact in binary."""

import pytest

from bridges.media.i2c.mailbox_controller import POLL, Access, Controller
from bridges.media.i2c.mailbox_segments import ACK, EOT, SOT, TOG, Timing, seal
from tests.bridges.support import frame

POLL_S, IDLE_S, RESEND_S, STALL_S, REST_S = 2.0**-4, 4.0, 0.5, 2.0, 8.0
TICK_S = 2.0**-20
SHORT, LONG = frame(20), frame(40)  # in one segment, and in two


def controller() -> Controller:
    return Controller(Timing(POLL_S, IDLE_S, RESEND_S, STALL_S, REST_S))


def answer(mail: Controller, now: float, ctl: int, size: int = 0) -> None:
    """Let the controller poll, as it must now, and read this."""
    assert mail.next(now) == POLL
    assert mail.done(now, bytes((ctl, size))) is None


def wrote(mail: Controller, now: float, data: bytes) -> bool:
    """Tell whether the controller writes just this now, data, n and ctl; it succeeds."""
    right = mail.next(now) == Access(0x1E + 2 - len(data), 0, data)
    assert mail.done(now) is None
    return right


def linked(now: float = 0.0, epoch: int = 1) -> Controller:
    mail = controller()
    answer(mail, now, epoch - 1)
    mail.done(now)
    answer(mail, mail.due_s, mail._epoch)  # noqa: SLF001
    return mail


def quiet(until: float = 16.0) -> Controller:
    """Return a linked controller that rests, last polled at `until`."""
    mail = linked()
    for now in (1.0, until):
        mail.due_s = now
        answer(mail, now, 1)
    assert mail.due_s == until + IDLE_S
    return mail


def segment(flags: int, data: bytes) -> bytes:
    return data + bytes((len(data), flags))


def test_linking_takes_the_next_epoch_and_then_it_is_up() -> None:
    mail = controller()
    assert (mail.state, mail.ready, mail.resting, mail.links) == ("linking", False, True, 0)
    assert mail.next(0.0) == POLL == Access(0x20, 2)
    assert not mail.resting
    mail.done(0.0, b"\0\0")
    assert wrote(mail, 0.0, b"\0\1")
    assert (mail.state, mail.ready, mail.resting) == ("linking", False, True)
    assert mail.due_s == POLL_S / 8
    assert mail.next(POLL_S / 8 - TICK_S) is None
    answer(mail, POLL_S / 8, 1)
    assert (mail.state, mail.ready, mail.resting, mail.links) == ("up", True, True, 1)
    assert (mail.resets, mail.nacks, mail.outcome) == (0, 0, None)
    assert mail.due_s == POLL_S / 8, "at once after progress"


@pytest.mark.parametrize(("seen", "epoch"), [(0, 1), (1, 2), (2, 1), (15, 1)])
def test_the_new_epoch_is_never_the_one_that_the_target_shows(seen: int, epoch: int) -> None:
    mail = controller()
    answer(mail, 0.0, seen)
    assert wrote(mail, 0.0, bytes((0, epoch)))


def test_epochs_go_from_15_to_1() -> None:
    mail, epochs = controller(), []
    for now in range(17):
        mail.due_s = now
        answer(mail, now, 0)
        if now:
            answer(mail, now, 0)
        epochs.append(mail.next(now).data[1])  # type: ignore[union-attr]
        mail.done(now)
        mail.due_s = now
        answer(mail, now, epochs[-1])
    assert epochs == [*range(1, 16), 1, 2]
    assert (mail.links, mail.resets) == (17, 16)


def test_while_linking_the_epoch_is_written_again_after_half_a_second_or_another_answer() -> None:
    mail = controller()
    answer(mail, 0.0, 0)
    assert wrote(mail, 0.0, b"\0\1")
    for now, seen, again in ((0.5 - TICK_S, 0, False), (0.5, 0, True), (0.625, 7, True), (0.75, 7, False)):
        mail.due_s = now
        answer(mail, now, seen)
        assert mail.resting != again
        assert mail.resting or wrote(mail, now, b"\0\1")
    mail.due_s = 2.0 - TICK_S
    answer(mail, 2.0 - TICK_S, 0x1F)
    assert wrote(mail, 2.0, b"\0\1")
    before = mail.state
    mail.due_s = 2.0
    answer(mail, 2.0, 0)
    assert (before, mail.state) == ("linking", "stalled")
    assert wrote(mail, 2.0, b"\0\1")
    assert mail.due_s == 2.0 + REST_S


def test_pauses_of_an_active_target_double_up_to_poll_ms_and_end_after_a_quarter_of_a_second() -> None:
    mail = linked()
    began, now, pauses = mail.due_s, mail.due_s, []
    while mail.due_s - now < IDLE_S:
        now = mail.due_s
        answer(mail, now, 1)
        pauses.append(mail.due_s - now)
    assert pauses == [POLL_S / 8, POLL_S / 4, POLL_S / 2, POLL_S, POLL_S, POLL_S, POLL_S, IDLE_S]
    assert now - began >= 0.25 > pauses[0] + sum(pauses[1:6])


def test_a_target_is_active_for_just_less_than_a_quarter_of_a_second() -> None:
    for late_s, pause_s in ((0.25 - TICK_S, POLL_S / 8), (0.25, IDLE_S)):
        mail = linked()
        now = mail.due_s + late_s
        answer(mail, now, 1)
        assert mail.due_s - now == pause_s
    mail.idle_s = 5.0
    mail.due_s = 3.0
    answer(mail, 3.0, 1)
    assert mail.due_s == 8.0


def test_a_message_is_written_at_once_if_the_target_was_just_polled() -> None:
    mail = quiet(16.0)
    mail.send(16.0 + POLL_S, SHORT)
    assert not mail.ready
    assert wrote(mail, 16.0625, segment(SOT | EOT | TOG | 1, seal(SHORT)))
    assert mail.due_s == 16.0625
    answer(mail, 16.0625, ACK | 1)
    assert (mail.outcome, mail.ready) == ("sent", True)


def test_a_message_waits_for_a_poll_if_the_last_one_is_older() -> None:
    mail = quiet(16.0)
    mail.send(16.125, SHORT)
    assert mail.due_s == 16.125
    answer(mail, 16.125, 1)
    assert wrote(mail, 16.125, segment(SOT | EOT | TOG | 1, seal(SHORT)))


def test_a_turn_under_way_is_not_disturbed_by_a_message() -> None:
    mail = quiet(16.0)
    assert mail.next(20.0) == POLL
    mail.send(20.0, SHORT)
    assert mail.next(20.0) == POLL
    mail.done(20.0, b"\1\0")
    assert wrote(mail, 20.0, segment(SOT | EOT | TOG | 1, seal(SHORT)))
    with pytest.raises(ValueError, match="one transfer"):
        mail.send(20.0, SHORT)


def test_a_long_message_goes_segment_by_segment() -> None:
    mail = quiet(16.0)
    mail.send(16.0, LONG)
    transfer = seal(LONG)
    assert wrote(mail, 16.0, segment(SOT | TOG | 1, transfer[:30]))
    answer(mail, 16.0, ACK | 1)
    assert mail.outcome is None
    assert wrote(mail, 16.0, segment(EOT | 1, transfer[30:]))
    answer(mail, 16.0, 1)
    assert mail.outcome == "sent"


def test_without_an_acknowledgement_a_segment_is_written_again_after_half_a_second() -> None:
    mail = quiet(16.0)
    mail.send(16.0, SHORT)
    written = segment(SOT | EOT | TOG | 1, seal(SHORT))
    assert wrote(mail, 16.0, written)
    answer(mail, 16.0, 1)
    assert mail.due_s == 16.0 + POLL_S / 8, "in flight, so it is polled soon"
    mail.due_s = 16.5 - TICK_S
    answer(mail, 16.5 - TICK_S, 1)
    assert mail.resting
    mail.due_s = 16.5
    answer(mail, 16.5, 1)
    assert wrote(mail, 16.5, written)


def test_a_transfer_stalls_after_2_s_without_progress_and_a_new_epoch_begins() -> None:
    mail = quiet(16.0)
    mail.send(16.0, LONG)
    mail.done(16.0)
    mail.due_s = 17.0
    answer(mail, 17.0, ACK | 1)
    mail.done(17.0)
    mail.due_s = 19.0 - TICK_S
    answer(mail, 19.0 - TICK_S, ACK | 1)
    mail.done(19.0 - TICK_S)
    assert (mail.state, mail.outcome) == ("up", None)
    mail.due_s = 19.0
    answer(mail, 19.0, ACK | 1)
    assert (mail.state, mail.outcome, mail.ready, mail.resets) == ("stalled", "stalled", False, 0)
    assert wrote(mail, 19.0, b"\0\2")
    assert mail.due_s == 19.0 + REST_S
    answer(mail, 27.0, 2)
    assert (mail.state, mail.links) == ("up", 2)


def test_a_target_is_absent_after_2_s_without_an_answer() -> None:
    mail = controller()
    for now, state in ((5.0, "linking"), (7.0 - TICK_S, "linking"), (7.0, "absent")):
        mail.due_s = now
        assert mail.next(now) == POLL
        mail.failed(now)
        assert mail.state == state
    assert (mail.nacks, mail.resting, mail.due_s) == (3, True, 7.0 + REST_S)
    answer(mail, 15.0, 0)
    assert mail.state == "linking"
    assert wrote(mail, 15.0, b"\0\1")


def test_a_linked_target_that_was_absent_is_up_when_it_answers() -> None:
    mail = quiet(16.0)
    mail.due_s = 18.0
    assert mail.next(18.0) == POLL
    mail.failed(18.0)
    assert (mail.state, mail.nacks) == ("absent", 1)
    answer(mail, 26.0, 1)
    assert (mail.state, mail.links, mail.due_s) == ("up", 1, 26.0 + IDLE_S)


def test_a_message_for_an_absent_target_stalls() -> None:
    mail = quiet(16.0)
    mail.send(16.0, SHORT)
    mail.failed(16.0)
    assert mail.due_s == 16.0 + POLL_S
    for now, outcome in ((18.0 - TICK_S, None), (18.0, "stalled")):
        mail.due_s = now
        mail.next(now)
        mail.failed(now)
        assert mail.outcome == outcome
    assert (mail.state, mail.ready) == ("absent", False)


def test_an_answer_of_another_length_counts_for_none() -> None:
    mail = controller()
    for data in (b"", b"\0", b"\0\0\0"):
        mail.due_s = 0.0
        assert mail.next(0.0) == POLL
        assert mail.done(0.0, data) is None
        assert mail.resting
    assert mail.done(0.0, b"\0\0") is None, "nothing was asked"
    assert (mail.nacks, mail.state, mail.links) == (0, "linking", 0)
    mail.due_s = 0.0
    answer(mail, 0.0, 0)
    assert mail.next(0.0) == Access(0x1E, 0, b"\0\1")


def test_a_segment_is_read_with_ctl_and_n_again_and_acknowledged() -> None:
    mail, sealed = quiet(16.0), seal(SHORT)
    answer(mail, 20.0, SOT | EOT | TOG | 1, len(sealed))
    assert mail.next(20.0) == Access(0x20, 26)
    assert mail.done(20.0, bytes((SOT | EOT | TOG | 1, 24)) + sealed) == SHORT
    assert wrote(mail, 20.0, bytes((0, ACK | 1)))
    assert mail.due_s == 20.0
    answer(mail, 20.0, 1)
    assert mail.resting


@pytest.mark.parametrize("first", [(SOT | EOT | 1, 24), (SOT | EOT | TOG | 2, 24), (SOT | EOT | TOG | 1, 23)])
def test_a_segment_that_reads_otherwise_the_second_time_is_not_taken(first: tuple[int, int]) -> None:
    mail = quiet(16.0)
    answer(mail, 20.0, SOT | EOT | TOG | 1, 24)
    assert mail.next(20.0) == Access(0x20, 26)
    assert mail.done(20.0, bytes(first) + seal(SHORT)) is None
    assert mail.resting
    answer(mail, mail.due_s, SOT | EOT | TOG | 1, 24)
    assert mail.next(mail.due_s) == Access(0x20, 26)


def test_a_segment_that_stays_up_is_acknowledged_again_after_half_a_second() -> None:
    mail = quiet(16.0)
    ctl, read = SOT | EOT | TOG | 1, bytes((SOT | EOT | TOG | 1, 24)) + seal(SHORT)
    answer(mail, 20.0, ctl, 24)
    assert mail.done(20.0, read) == SHORT
    assert wrote(mail, 20.0, bytes((0, ACK | 1)))
    for now, again in ((20.5 - TICK_S, False), (20.5, True)):
        mail.due_s = now
        answer(mail, now, ctl, 24)
        assert mail.resting != again
    assert wrote(mail, 20.5, bytes((0, ACK | 1)))
    mail.due_s = 30.0
    answer(mail, 30.0, TOG | 1, 0)
    assert mail.resting


@pytest.mark.parametrize("odd", [2, 0, ACK | 1])
def test_one_odd_answer_is_read_again_and_the_second_one_begins_a_new_epoch(odd: int) -> None:
    mail = quiet(16.0)
    answer(mail, 20.0, odd)
    answer(mail, 20.0, 1)
    assert (mail.resting, mail.resets, mail.links) == (True, 0, 1)
    mail.due_s = 21.0
    answer(mail, 21.0, odd)
    answer(mail, 21.0, odd)
    assert (mail.resets, mail.state, mail.ready) == (1, "linking", False)
    assert wrote(mail, 21.0, bytes((0, 3 if odd == 2 else 2)))
    answer(mail, mail.due_s, 3 if odd == 2 else 2)
    assert (mail.links, mail.state) == (2, "up")


def test_a_reset_loses_what_was_begun_and_half_a_message() -> None:
    mail = quiet(16.0)
    mail.send(16.0, SHORT)
    mail.done(16.0)
    answer(mail, 16.0, SOT | TOG | 1, 30)
    mail.done(16.0, bytes((SOT | TOG | 1, 30)) + bytes(30))
    mail.done(16.0)
    for _ in range(2):
        answer(mail, 16.0, 0)
    assert (mail.outcome, mail.inbox.rejected, mail.resets) == ("reset", {"reset": 1}, 1)
    assert wrote(mail, 16.0, b"\0\2"), "with both bits 0"


def test_a_wake_polls_now_and_soon_again() -> None:
    mail = quiet(16.0)
    mail.wake(17.0)
    assert mail.due_s == 17.0
    mail.wake(18.0)
    assert mail.due_s == 17.0
    answer(mail, 18.0, 1)
    assert mail.due_s == 18.0 + POLL_S / 8


def test_by_default_it_has_the_times_of_the_document() -> None:
    assert (Controller().timing, Controller().idle_s) == (Timing(), 0.05)
    counted = dict[str, int]()
    assert Controller(rejected=counted).inbox.rejected is counted
