"""What one hop of a frame is, and what reasons count since it began."""

from appliance.explain.hop import Exit, Hop, gained


def test_only_reasons_that_have_counted_since_are_told() -> None:
    assert gained({"echo": 2, "hops": 1, "limit": 7}, {"echo": 1, "limit": 7}) == ("echo", "hops")


def test_a_rehearsal_has_no_pipes_and_no_times() -> None:
    assert (Hop("p", "gw", "link").at_ns, Exit("link").pipes, Exit("link").at_ns) == (0, 0, None)
