"""The batches and times of a replay."""

from appliance.probe.replay import steady, timed, together
from tests.capture.capture_support import FRAMES, STAMPED, row


def test_envelopes_are_taken_off_unless_they_are_wanted() -> None:
    rows = [row(n, message) for n, message in enumerate(STAMPED)]
    assert [m for _, messages in together(timed(rows, False), 1) for m in messages] == FRAMES
    assert [m for _, messages in together(timed(rows, True), 1) for m in messages] == STAMPED


def test_the_pauses_are_kept() -> None:
    rows = [row(n, b"%d" % n, ts_ns=ts) for n, ts in enumerate([0, 240_000, 260_000, 50_000_000])]
    found = list(together(timed(rows, True), 1.0))
    assert [(ts - 10**18, messages) for ts, messages in found] == [
        (0, [b"0", b"1"]),
        (260_000, [b"2"]),
        (50_000_000, [b"3"]),
    ]
    assert len(list(together(timed(rows, True), 1000.0))) == 1


def test_where_messages_are_many_more_of_them_go_together() -> None:
    rows = [row(n, b"%d" % n, ts_ns=n * 20_000) for n in range(200)]
    assert [len(messages) for _, messages in together(timed(rows, True), 1.0)] == [51, 51, 51, 47]


def test_a_clock_that_jumps_makes_no_pause_and_is_told() -> None:
    day, jumps = 86_400 * 10**9, list[int]()
    times = [0, 7, 20_000 * day, 20_000 * day + 5, 20_000 * day + 4, 9, day + 8]
    found = steady(((ts_ns, b"") for ts_ns in times), jumps.append)
    assert [ts_ns for ts_ns, _ in found] == [0, 7, 7, 12, 11, 11, day + 10]
    assert jumps == [20_000 * day - 7, 5 - 20_000 * day]
