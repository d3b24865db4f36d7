"""This machine's own addresses: whichever it has, as they are at the moment."""

import socket

import pytest

from bus.machine import addresses
from bus.machine.addresses import host_towards, is_own, refuse_itself
from tests.helpers.ports import free_port

OTHER = "198.51.100.7"  # of a documentation network


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1", "localhost"])
def test_loopback_is_own(host: str) -> None:
    assert is_own(host)


@pytest.mark.parametrize("host", [OTHER, "::ffff:198.51.100.7", "2001:db8::7", "", "0.0.0.0", "no name"])
def test_other_addresses_are_not(host: str) -> None:
    assert not is_own(host)


def test_the_address_by_which_others_are_reached_is_own_also_mapped_to_ipv6() -> None:
    mine = host_towards(OTHER)
    if not mine:
        pytest.skip("no route leaves this machine")
    assert is_own(mine)
    assert is_own(f"::ffff:{mine}")


def test_an_address_that_comes_and_goes_is_own_as_long_as_packets_to_it_stay_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = {"10.0.0.11", "192.0.2.2"}
    monkeypatch.setattr(addresses, "host_towards", lambda host: host if host in here else "10.0.0.11")
    assert [is_own(host) for host in ("10.0.0.11", "192.0.2.2", "10.0.0.12")] == [True, True, False]
    here.remove("192.0.2.2")
    assert not is_own("192.0.2.2")


def test_a_socket_that_is_connected_to_itself_is_refused_and_its_port_is_free_at_once() -> None:
    here = "127.0.0.1", free_port()
    with socket.socket() as sock:
        sock.bind(here)
        sock.connect(here)
        with pytest.raises(ConnectionRefusedError):
            refuse_itself(sock)
    with socket.create_server(here, reuse_port=False):
        pass


def test_sockets_that_are_connected_to_others_or_to_none_are_not() -> None:
    one, other = socket.socketpair()  # neither has a name, so the names are equal
    with one, other, socket.socket(socket.AF_INET, fileno=one.detach()) as simulated:
        refuse_itself(other)
        refuse_itself(simulated)
    with socket.create_server(("127.0.0.1", 0)) as server:
        refuse_itself(server)
        with socket.create_connection(server.getsockname()) as sock:
            refuse_itself(sock)
