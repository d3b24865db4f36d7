"""The gateway's end of the I2C mailbox: how it links, finds bits out of step, and begins a new epoch."""

import pytest

from bridges.media.i2c.mailbox_controller import POLL, Access
from bridges.media.i2c.mailbox_segments import ACK, EOT, SOT, TOG, seal
from tests.bridges.media.i2c.mailbox_access import (
    IDLE_S,
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


def test_a_message_that_was_not_begun_goes_in_the_next_epoch() -> None:
    mail = quiet(16.0)
    assert mail.next(20.0) == POLL
    mail.send(20.0, SHORT)
    mail.done(20.0, b"\0\0")
    answer(mail, 20.0, 0)
    assert (mail.resets, mail.outcome) == (1, None)
    assert wrote(mail, 20.0, b"\0\2")
    answer(mail, mail.due_s, 2)
    assert wrote(mail, mail.due_s, segment(SOT | EOT | TOG | 2, seal(SHORT)))


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


def test_one_odd_answer_in_a_later_epoch_is_read_again_whatever_it_is() -> None:
    mail = linked(epoch=2)
    for odd in (0, 1, 3):
        now = mail.due_s
        answer(mail, now, odd)
        answer(mail, now, 2)
    assert (mail.resets, mail.links) == (0, 1)


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
