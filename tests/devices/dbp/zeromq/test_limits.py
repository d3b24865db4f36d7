"""The limits of a ZeroMQ socket are those of docs/wire/zmtp.md, and all above 0."""

from dataclasses import fields

import pytest

from bus.serving.limits import READ_BYTES
from devices.dbp.zeromq.limits import Limits


def test_the_limits_of_a_socket_are_those_of_its_page() -> None:
    """docs/wire/zmtp.md."""
    one = Limits()
    assert (one.message_bytes, one.frames, one.queue_bytes) == (64 << 10, 256, 4 << 20)
    assert (one.connections, one.topics, one.topic_bytes) == (8192, 1024, 1 << 20)
    assert (one.handshake_s, one.stalled_s) == (5, 30)
    assert (one.retry_min_s, one.retry_max_s) == (0.1, 2)


def test_a_peer_is_read_in_quarters_of_what_is_read_at_once() -> None:
    assert Limits().read_bytes == READ_BYTES // 4
    assert Limits(read_bytes=READ_BYTES).read_bytes == READ_BYTES
    with pytest.raises(ValueError, match="at most"):
        Limits(read_bytes=READ_BYTES + 1)


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_every_limit_is_above_zero(name: str) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Limits(**{name: 0})
    Limits(**{name: 1})
