"""rtnetlink messages: as this kernel sends them, and as man pages describe them."""

import socket
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.rtnetlink import (
    DELETE_ADDRESS,
    DELETE_LINK,
    DONE,
    ERROR,
    FAILED,
    GET_ADDRESS,
    GET_LINK,
    GROUPS,
    LOOPBACK,
    MULTICAST,
    NEW_ADDRESS,
    NEW_LINK,
    RUNNING,
    TENTATIVE,
    UP,
    AddressNews,
    Controller,
    DumpEnd,
    LinkNews,
    News,
    controller_in,
    parse,
    request,
    restart_request,
    result,
)

NAME, MTU = 3, 4  # attributes of a link, linux/if_link.h
ADDRESS, LOCAL, FLAGS = 1, 2, 8  # and of an address, linux/if_addr.h


def asked(kind: int) -> Iterator[News]:
    """Ask the kernel for all links or addresses."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(10)
        kernel.send(request(kind))
        while True:
            for news in parse(kernel.recv(65_536)):
                yield news
                if isinstance(news, DumpEnd):
                    return


def message(kind: int, body: bytes) -> bytes:
    size = 16 + len(body)
    return pack("=IHHII", size, kind, 0, 1, 0) + body + bytes(-size % 4)


def attribute(kind: int, value: bytes) -> bytes:
    size = 4 + len(value)
    return pack("=HH", size, kind) + value + bytes(-size % 4)


def link(*attributes: bytes, family: int = 0) -> bytes:
    return pack("=BxHiII", family, 1, 7, UP, 0) + b"".join(attributes)


def address(*attributes: bytes, flags: int = 0x80) -> bytes:
    return pack("=BBBBI", 2, 24, flags, 0, 7) + b"".join(attributes)


def test_the_numbers_of_linux() -> None:
    """linux/rtnetlink.h, linux/netlink.h, linux/if.h and linux/if_addr.h."""
    assert (NEW_LINK, DELETE_LINK, GET_LINK) == (16, 17, 18)
    assert (NEW_ADDRESS, DELETE_ADDRESS, GET_ADDRESS) == (20, 21, 22)
    assert (DONE, ERROR) == (3, 2)
    assert (UP, LOOPBACK, RUNNING, MULTICAST) == (0x1, 0x8, 0x40, 0x1000)
    assert (TENTATIVE, FAILED) == (0x40, 0x08)
    assert GROUPS == 0x1 | 0x10 | 0x100, "links, IPv4 addresses, IPv6 addresses"


@pytest.mark.parametrize(("kind", "body_bytes"), [(GET_LINK, 16), (GET_ADDRESS, 8)])
def test_a_request_asks_for_all_whatever_they_are(kind: int, body_bytes: int) -> None:
    """A header with NLM_F_REQUEST and NLM_F_DUMP and number 1; the rest is zero: of any family and index."""
    assert request(kind) == pack("=IHHII", 16 + body_bytes, kind, 0x301, 1, 0) + bytes(body_bytes)


def test_this_kernel_tells_of_its_loopback() -> None:
    index = socket.if_nametoindex("lo")
    *links, end = asked(GET_LINK)
    (found,) = (news for news in links if isinstance(news, LinkNews) and news.ifindex == index)
    assert (found.name, found.flags & LOOPBACK, found.gone) == ("lo", LOOPBACK, False)
    assert found.mtu >= 1280
    assert end == DumpEnd(0)
    *addresses, end = asked(GET_ADDRESS)
    here = {news.address for news in addresses if isinstance(news, AddressNews) and news.ifindex == index}
    assert ip_address("127.0.0.1") in here
    assert end == DumpEnd(0)


def test_a_link_that_comes_or_goes() -> None:
    body = link(attribute(NAME, b"eth0\0"), attribute(MTU, pack("=I", 1500)))
    assert list(parse(message(NEW_LINK, body))) == [LinkNews(7, "eth0", UP, 1500, False)]
    assert list(parse(message(DELETE_LINK, body))) == [LinkNews(7, "eth0", UP, 1500, True)]


def test_a_link_may_leave_out_its_attributes() -> None:
    assert list(parse(message(NEW_LINK, link()))) == [LinkNews(7, "", UP, 0, False)]
    assert list(parse(message(NEW_LINK, link(attribute(MTU, b"\1\0\0"))))) == [LinkNews(7, "", UP, 0, False)]


def test_the_port_of_a_bridge_is_no_link_that_goes() -> None:
    assert list(parse(message(DELETE_LINK, link(family=socket.AF_BRIDGE)))) == []


@pytest.mark.parametrize("text", ["10.0.0.1", "fe80::1"])
def test_an_address_that_comes_or_goes(text: str) -> None:
    here = ip_address(text)
    body = address(attribute(ADDRESS, here.packed))
    assert list(parse(message(NEW_ADDRESS, body))) == [AddressNews(7, here, 0x80, False)]
    assert list(parse(message(DELETE_ADDRESS, body))) == [AddressNews(7, here, 0x80, True)]


def test_of_two_addresses_the_local_one_is_ours() -> None:
    ours, peer = ip_address("10.0.0.1"), ip_address("10.0.0.2")
    body = address(attribute(ADDRESS, peer.packed), attribute(LOCAL, ours.packed))
    assert list(parse(message(NEW_ADDRESS, body))) == [AddressNews(7, ours, 0x80, False)]


def test_long_flags_of_an_address_stand_for_the_short_ones() -> None:
    body = address(attribute(ADDRESS, bytes(4)), attribute(FLAGS, pack("=I", 0x340)))
    assert [news.flags for news in parse(message(NEW_ADDRESS, body)) if isinstance(news, AddressNews)] == [
        0x340
    ]


def test_an_address_of_neither_version_is_skipped() -> None:
    assert list(parse(message(NEW_ADDRESS, address(attribute(ADDRESS, bytes(8)))))) == []


def test_an_attribute_s_upper_bits_are_marks() -> None:
    body = link(attribute(NAME | 0x8000, b"eth0\0"), attribute(MTU | 0x4000, pack("=I", 1500)))
    assert list(parse(message(NEW_LINK, body))) == [LinkNews(7, "eth0", UP, 1500, False)]


def test_attributes_end_at_one_that_is_too_short() -> None:
    body = link(pack("=HH", 3, NAME), attribute(MTU, pack("=I", 1500)))
    assert list(parse(message(NEW_LINK, body))) == [LinkNews(7, "", UP, 0, False)]
    empty = link(pack("=HH", 4, NAME), attribute(MTU, pack("=I", 1500)))
    assert list(parse(message(NEW_LINK, empty))) == [LinkNews(7, "", UP, 1500, False)]


def test_a_dump_ends_well_or_with_the_kernel_s_error() -> None:
    assert list(parse(message(DONE, pack("=i", 0)))) == [DumpEnd(0)]
    assert list(parse(message(ERROR, pack("=i", -16)))) == [DumpEnd(16)]
    assert list(parse(message(ERROR, b""))) == [DumpEnd(0)]
    assert list(parse(message(DONE, b""))) == [DumpEnd(0)]


def test_several_messages_lie_in_one_datagram_at_multiples_of_four() -> None:
    odd, other, last = message(DONE, b"\0" * 5), message(99, b"abc"), message(NEW_LINK, link())
    assert list(parse(odd + other + last)) == [DumpEnd(0), LinkNews(7, "", UP, 0, False)]


def test_each_message_of_a_datagram_has_its_own_attributes() -> None:
    first, second = link(attribute(NAME, b"eth0\0")), link(attribute(MTU, pack("=I", 1500)))
    found = list(parse(message(NEW_LINK, first) + message(NEW_LINK, second) + message(DONE, b"")))
    assert found == [LinkNews(7, "eth0", UP, 0, False), LinkNews(7, "", UP, 1500, False), DumpEnd(0)]


def test_a_message_without_a_header_s_length_ends_the_datagram() -> None:
    assert list(parse(pack("=IHHII", 15, DONE, 0, 0, 0) + message(DONE, b""))) == []


def test_short_bodies_are_skipped() -> None:
    assert list(parse(message(NEW_LINK, link()[:-4]))) == []
    assert list(parse(message(NEW_ADDRESS, address()[:-4]))) == []


@given(st.binary(max_size=80), st.sampled_from([NEW_LINK, DELETE_LINK, NEW_ADDRESS, DELETE_ADDRESS, ERROR]))
def test_noise_never_raises(noise: bytes, kind: int) -> None:
    list(parse(noise))
    list(parse(message(kind, noise)))


def test_an_address_of_its_own_without_bytes_is_none() -> None:
    body = address(attribute(ADDRESS, bytes(4)), attribute(LOCAL, b""))
    assert list(parse(message(NEW_ADDRESS, body))) == []


@pytest.mark.skipif(sys.byteorder == "big", reason="netlink has the machine's byte order")
def test_the_request_to_restart_a_can_controller_byte_by_byte() -> None:
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


def test_a_controller_is_told_with_its_mode_and_both_rates() -> None:
    """linux/can/netlink.h: IFLA_CAN_BITTIMING 1, IFLA_CAN_CTRLMODE 5, IFLA_CAN_DATA_BITTIMING 9."""
    rates = attribute(1, pack("=II", 500_000, 875)) + attribute(9, pack("=II", 2_000_000, 750))
    data = attribute(5, pack("=II", 0xFF, 0x22)) + rates
    info = attribute(18, attribute(1, b"can\0") + attribute(2, data))
    told = answer(NEW_LINK, link(attribute(NAME, b"can0\0"), info))
    assert controller_in(told) == Controller("can", 0x22, 500_000, 2_000_000)
    assert controller_in(answer(NEW_LINK, link())) == Controller()


def test_other_answers_have_no_result() -> None:
    assert result(answer(3, pack("=i", -16))) is None
    assert result(answer(2, b"\0\0\0")) is None
    assert result(b"") is None
