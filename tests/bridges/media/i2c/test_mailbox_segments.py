"""The halves of the I2C mailbox, segment by segment: which bits they show and take, and what they count."""

from zlib import crc32

import pytest

from bridges.media.i2c.mailbox_segments import ACK, EOT, EPOCH, RESIDUE, SOT, TOG, Inbox, Outbox, Timing, seal
from tests.bridges.support import frame


def segments(message: bytes, toggle: int = 0) -> list[tuple[int, bytes]]:
    """Return the flags and data of a transfer whose first segment flips `toggle`."""
    out = Outbox()
    out.toggle = toggle
    out.load(message)
    found = []
    while out.place():
        found.append(out.segment())
        assert out.take_ack(out.toggle)
    assert not out.busy
    return found


def take(inbox: Inbox, parts: list[tuple[int, bytes]]) -> list[bytes]:
    taken = [inbox.take(flags, data) for flags, data in parts]
    return [message for message in taken if message is not None]


def test_the_bits_of_ctl() -> None:
    assert (SOT, EOT, TOG, ACK, EPOCH) == (0x80, 0x40, 0x20, 0x10, 0x0F)


def test_the_times_of_the_document() -> None:
    """docs/wire/i2c.md: polls after 5 ms, 50 ms if idle; a segment again after 0.5 s; 2 s; once a second."""
    assert Timing() == Timing(0.005, 0.05, 0.5, 2.0, 1.0)


@pytest.mark.parametrize("size", [4, 3084])
def test_a_sealed_transfer_has_the_residue(size: int) -> None:
    transfer = seal(bytes(size))
    assert (len(transfer), crc32(transfer)) == (size + 4, RESIDUE)


@pytest.mark.parametrize("size", [3, 3085])
def test_a_transfer_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"4 to 3084 bytes, not {size}"):
        seal(bytes(size))


@pytest.mark.parametrize(("size", "data"), [(26, [30]), (27, [30, 1]), (56, [30, 30]), (57, [30, 30, 1])])
def test_segments_have_30_bytes_and_the_last_has_the_rest(size: int, data: list[int]) -> None:
    parts = segments(frame(size))
    assert [len(part) for _, part in parts] == data
    assert not any(flags & ~(SOT | EOT | TOG) for flags, _ in parts)
    assert [flags & SOT != 0 for flags, _ in parts] == [True] + [False] * (len(data) - 1)
    assert [flags & EOT != 0 for flags, _ in parts] == [False] * (len(data) - 1) + [True]
    assert [flags & TOG != 0 for flags, _ in parts] == [number % 2 == 0 for number in range(len(data))]


def test_without_a_segment_the_toggle_stays_up() -> None:
    out = Outbox()
    assert (out.segment(), out.place(), out.busy) == ((0, b""), False, False)
    out.load(frame(20))
    assert out.segment() == (0, b"")
    assert out.place()
    assert not out.place()
    assert out.segment() == (SOT | EOT | TOG, seal(frame(20)))
    assert out.take_ack(1)
    assert out.segment() == (TOG, b"")


def test_only_the_placed_segment_can_be_acknowledged() -> None:
    out = Outbox()
    out.load(frame(20))
    assert [out.in_step(ack) for ack in (0, 1)] == [True, False]
    assert [out.take_ack(ack) for ack in (0, 1)] == [False, False]
    out.place()
    assert [out.in_step(ack) for ack in (0, 1)] == [True, True]
    assert [out.take_ack(ack) for ack in (0, 1)] == [False, True]
    assert [out.in_step(ack) for ack in (0, 1)] == [False, True]
    assert [out.take_ack(ack) for ack in (0, 1)] == [False, False]


@pytest.mark.parametrize(
    ("steps", "drop", "lost"),
    [
        ("", False, False),
        ("", True, False),
        ("load", False, False),
        ("load", True, True),
        ("place", False, True),
    ],
)
def test_a_new_epoch_loses_what_was_begun(steps: str, drop: bool, lost: bool) -> None:
    out = Outbox()
    if steps:
        out.load(frame(20))
    if steps == "place":
        out.place()
    assert out.reset(drop) == lost
    assert (out.busy, out.placed, out.toggle) == (bool(steps) and not lost, False, 0)


def test_a_transfer_of_which_nothing_was_sent_stays() -> None:
    out = Outbox()
    out.load(frame(20))
    assert not out.reset()
    assert out.busy


def test_between_two_segments_a_transfer_is_lost_too() -> None:
    out = Outbox()
    out.load(frame(100))
    out.place()
    out.take_ack(1)
    assert out.reset()
    assert not out.busy
    out.load(frame(20))
    assert out.place()
    assert out.segment()[0] == SOT | EOT | TOG


@pytest.mark.parametrize(
    ("ctl", "size", "new"),
    [(TOG, 1, True), (TOG, 30, True), (TOG, 0, False), (TOG, 31, False), (0, 30, False)],
)
def test_what_announces_a_new_segment(ctl: int, size: int, new: bool) -> None:
    inbox = Inbox()
    assert inbox.is_new(ctl, size) == new
    inbox.ack = 1
    assert inbox.is_new(ctl ^ TOG, size) == new


def test_each_segment_is_acknowledged_even_if_it_gives_nothing() -> None:
    inbox = Inbox()
    acks = []
    for flags, data in [*segments(frame(100)), (EOT, b"x"), (SOT, b"y")]:
        inbox.take(flags, data)
        acks.append(inbox.ack)
    assert acks == [1, 0, 1, 0, 1, 0]


def test_the_longest_message_is_taken_and_the_bound_of_a_small_target_is_exact() -> None:
    assert take(Inbox(), segments(bytes(3084))) == [bytes(3084)]
    small = Inbox(100)
    assert take(small, segments(frame(100))) == [frame(100)]
    assert small.rejected == {}
    assert take(small, segments(frame(101))) == []
    assert take(small, segments(frame(300))) == []
    assert take(small, segments(frame(4))) == [frame(4)]
    assert small.rejected == {"oversize": 2}


@pytest.mark.parametrize(
    ("parts", "rejected"),
    [
        ([(EOT, b"x")], {"orphan": 1}),
        ([(0, b"x"), (0, b"x"), (EOT, b"x")], {"orphan": 1}),
        ([(0, b"x")], {}),
        ([(SOT, b"x"), (SOT, b"x")], {"unfinished": 1}),
        ([(SOT | EOT, bytes(7))], {"short": 1}),
        ([(SOT | EOT, bytes(8))], {"crc": 1}),
        ([(SOT | EOT, bytes(8)), (EOT, b"x")], {"crc": 1, "orphan": 1}),
    ],
)
def test_what_gives_no_message_is_counted_once_and_the_next_is_heard(
    parts: list[tuple[int, bytes]], rejected: dict[str, int]
) -> None:
    counted = dict[str, int]()
    inbox = Inbox(rejected=counted)
    assert take(inbox, parts) == []
    assert counted == rejected
    again = "unfinished" in rejected
    assert take(inbox, segments(frame(50))) == [frame(50)]
    assert counted.get("unfinished", 0) == 2 * again


def test_a_transfer_that_is_too_long_by_its_last_segment_hides_no_orphan() -> None:
    inbox = Inbox(26)
    assert take(inbox, [(SOT, bytes(30)), (EOT, b"x"), (EOT, b"x")]) == []
    assert inbox.rejected == {"oversize": 1, "orphan": 1}


def test_of_a_transfer_that_is_too_long_the_rest_is_passed_over_once() -> None:
    inbox = Inbox(26)
    long = [(SOT, bytes(30)), (0, b"x"), (0, b"x"), (EOT, b"x")]
    assert take(inbox, [*long, *long, (EOT, b"x")]) == []
    assert inbox.rejected == {"oversize": 2, "orphan": 1}
    assert take(inbox, [*long[:2], *segments(frame(20)), (EOT, b"x")]) == [frame(20)]
    assert inbox.rejected == {"oversize": 3, "orphan": 2}


def test_a_new_epoch_counts_what_was_open_and_forgets_what_was_passed_over() -> None:
    inbox = Inbox(26)
    inbox.reset()
    assert inbox.rejected == {}
    inbox.take(SOT, b"x")
    inbox.reset()
    assert (inbox.ack, inbox.rejected) == (0, {"reset": 1})
    take(inbox, [(SOT, bytes(30)), (0, b"x")])
    inbox.reset()
    assert take(inbox, [(EOT, b"x")]) == []
    assert inbox.rejected == {"reset": 1, "oversize": 1, "orphan": 1}
