"""The mode and rates of a controller, and whether it acknowledges, as the kernel says it."""

import struct

import pytest

from bridges.media.can import listening
from bridges.media.rtnetlink import FD, LISTEN_ONLY, Controller, controller_in, link_request


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def answer(kind: bytes, mode: int, *rates: int) -> bytes:
    """Return what the kernel says, with `can_bittiming` of linux/can/netlink.h for each rate."""
    timings = (
        attribute(key, struct.pack("=8I", rate, *range(7))) for key, rate in zip((1, 9), rates, strict=False)
    )
    data = attribute(5, struct.pack("=II", 0, mode)) + b"".join(timings)
    info = attribute(18, attribute(1, kind + b"\0") + attribute(2, data))
    return struct.pack("=IHHII", 0, 16, 0, 1, 0) + struct.pack("=BxHiII", 0, 280, 3, 0, 0) + info


@pytest.mark.parametrize(
    ("kind", "mode", "expected"),
    [(b"can", LISTEN_ONLY, ("can", 2)), (b"can", 0x21, ("can", 0x21)), (b"vcan", 0, ("vcan", 0))],
)
def test_the_mode_in_an_answer_of_the_kernel(kind: bytes, mode: int, expected: tuple[str, int]) -> None:
    assert controller_in(answer(kind, mode)) == Controller(*expected)


def test_the_bit_rates_in_an_answer_of_the_kernel() -> None:
    found = controller_in(answer(b"can", FD, 500_000, 2_000_000))
    assert found == Controller("can", 0x20, 500_000, 2_000_000)
    assert controller_in(answer(b"can", 0, 125_000)).bitrate == 125_000


@pytest.mark.parametrize("size", range(0, 108, 3))
def test_an_answer_that_is_cut_raises_nothing(size: int) -> None:
    controller_in(answer(b"can", LISTEN_ONLY, 500_000)[:size])


def test_loopback_is_asked_like_any_other() -> None:
    """The kernel answers for it, and it is no controller that only listens."""
    assert len(link_request(1)) == 32
    assert listening.trouble("lo").startswith("lo acknowledges frames")
    assert listening.trouble("none-such9") == ""
