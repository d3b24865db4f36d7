"""The limits of a service: what holds by default, and what is refused."""

from dataclasses import asdict, replace

import pytest

from bus.serving.limits import READ_BYTES, Limits


def test_what_holds_by_default() -> None:
    assert asdict(Limits()) == {
        "heartbeat_s": 1.0,
        "idle_s": 5.0,
        "stalled_s": 30.0,
        "queue_bytes": 1_048_576,
        "object_bytes": 65_536,
        "connections": 1024,
        "read_bytes": 262_144,
    }


@pytest.mark.parametrize("name", asdict(Limits()))
def test_every_limit_is_above_zero(name: str) -> None:
    replace(Limits(), **{name: 1})
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="above 0"):
            replace(Limits(), **{name: wrong})


def test_no_more_is_read_at_once_than_can_be_cut_at_once() -> None:
    replace(Limits(), read_bytes=READ_BYTES)
    with pytest.raises(ValueError, match="at most 262144"):
        replace(Limits(), read_bytes=READ_BYTES + 1)
