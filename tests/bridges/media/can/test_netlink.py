"""The request that restarts a CAN controller, as linux/rtnetlink.h and linux/can/netlink.h lay it out."""

import sys
from struct import pack

import pytest

from bridges.media.can.netlink import restart_request, result


@pytest.mark.skipif(sys.byteorder == "big", reason="netlink has the machine's byte order")
def test_the_request_byte_by_byte() -> None:
    header = "38000000100005000100000000000000"  # length, RTM_NEWLINK, REQUEST | ACK, number
    link = "00000000070000000000000000000000"  # the index
    info = "1800120008000100" + b"can\0".hex()  # IFLA_LINKINFO, IFLA_INFO_KIND
    data = "0c0002000800070001000000"  # IFLA_INFO_DATA, IFLA_CAN_RESTART
    assert restart_request(7).hex() == header + link + info + data
    assert restart_request(7, 9).hex() == (header + link + info + data).replace("01000000", "09000000", 1)


def answer(kind: int, body: bytes) -> bytes:
    return pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body


def test_the_kernel_answers_with_an_errno_or_zero() -> None:
    assert result(answer(2, pack("=i", 0))) == 0
    assert result(answer(2, pack("=i", -16) + bytes(16))) == 16


def test_other_answers_have_no_result() -> None:
    assert result(answer(3, pack("=i", -16))) is None
    assert result(answer(2, b"\0\0\0")) is None
    assert result(b"") is None
