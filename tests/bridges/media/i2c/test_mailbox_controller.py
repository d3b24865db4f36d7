"""The gateway's end of the I2C mailbox: polls and their pauses, and messages in both directions."""

import pytest

from bridges.media.i2c.mailbox_controller import POLL, Access, Controller
from bridges.media.i2c.mailbox_segments import ACK, EOT, SOT, TOG, Timing, seal
from tests.bridges.media.i2c.mailbox_access import (
    IDLE_S,
    LONG,
    POLL_S,
    REST_S,
    SHORT,
    TICK_S,
    answer,
    controller,
    linked,
    quiet,
    segment,
    wrote,
)


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


def test_a_poll_that_has_just_begun_is_not_left_for_a_message() -> None:
    mail = quiet(16.0)
    mail.wake(16.0)
    assert mail.next(16.0) == POLL
    mail.send(16.0, SHORT)
    assert mail.next(16.0) == POLL


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


@pytest.mark.parametrize(("flags", "taken", "rejected"), [(ACK, SHORT, {}), (0x02, None, {"torn": 1})])
def test_a_target_that_acknowledges_while_its_segment_is_read_tears_nothing(
    flags: int, taken: bytes | None, rejected: dict[str, int]
) -> None:
    mail, data, ctl = quiet(16.0), seal(SHORT), SOT | EOT | TOG | 1
    mail.wake(16.0)
    answer(mail, 16.0, ctl, len(data))
    assert mail.next(16.0) == Access(0x20, len(data) + 2)
    assert mail.done(16.0, bytes((ctl ^ flags, len(data))) + data) == taken
    assert mail.inbox.rejected == rejected


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


def test_a_message_does_not_wake_an_absent_target() -> None:
    mail = quiet(16.0)
    mail.due_s = 18.0
    mail.next(18.0)
    mail.failed(18.0)
    mail.send(18.5, SHORT)
    assert (mail.resting, mail.due_s) == (True, 18.0 + REST_S)


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


@pytest.mark.parametrize("data", [seal(SHORT), b"x"])
def test_a_segment_that_stays_up_is_acknowledged_again_after_half_a_second(data: bytes) -> None:
    mail, ctl, size = quiet(16.0), SOT | TOG | 1, len(data)
    answer(mail, 20.0, ctl, size)
    assert mail.done(20.0, bytes((ctl, size)) + data) is None
    assert wrote(mail, 20.0, bytes((0, ACK | 1)))
    for now, again in ((20.5 - TICK_S, False), (20.5, True)):
        mail.due_s = now
        answer(mail, now, ctl, size)
        assert mail.resting != again
    assert wrote(mail, 20.5, bytes((0, ACK | 1)))
    mail.due_s = 30.0
    answer(mail, 30.0, TOG | 1, 0)
    assert mail.resting


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
