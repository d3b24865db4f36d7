"""Addresses and hosts as people write them, right and wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.urls import check_dial, check_host, is_wildcard, split_url


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.31",
        "::1",
        "fe80::1%eth0",
        "localhost",
        "gw-a",
        "gw_a.plant.",
        "7seas",
        "a.b2",
        "bücher.example",
    ],
)
def test_hosts(host: str) -> None:
    check_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.311", "10.0.0", "1", "010.0.0.1", "a.7", "a..b", ".a", "", "-a", "a-", "a" * 64, "a:5", "a/b",
        "ü" * 60, "*", ".".join(["a" * 60] * 5), "\U0002ebe1",
    ],
)  # fmt: skip
def test_what_is_no_host(host: str) -> None:
    with pytest.raises(ValueError, match="is no host"):
        check_host(host)


@given(st.text(max_size=70))
def test_a_host_that_is_accepted_can_be_looked_up(host: str) -> None:
    try:
        check_host(host)
    except ValueError:
        return
    host.encode("idna")


@pytest.mark.parametrize(
    "url", ["tcp://10.0.0.311:5", "ws://a..b:5/x", "tls+tcp://a.7:5", "tcp://[fe80::zz]:5"]
)
def test_an_address_with_an_impossible_host(url: str) -> None:
    with pytest.raises(ValueError, match=r"no host|IPv"):
        split_url(url)


@pytest.mark.parametrize("port", ["70000", "x", "-1"])
def test_an_address_with_an_impossible_port(port: str) -> None:
    with pytest.raises(ValueError, match=f'^"{port}" is no port: write a number up to 65535$'):
        split_url(f"tcp://127.0.0.1:{port}")


def test_an_ip_address_has_one_form() -> None:
    assert split_url("tcp://[0:0::1]:5") == split_url("tcp://[::1]:5")
    assert split_url("tcp://*:5").host == "*"


def test_a_wildcard_is_for_listening() -> None:
    for host in ("*", "0.0.0.0", "[::]", "[0::0]"):
        split_url(f"tcp://{host}:5")
        assert is_wildcard(host.strip("[]"))
        with pytest.raises(ValueError, match="not dialled"):
            check_dial(f"tcp://{host}:5")


def test_a_long_port_is_said_in_part() -> None:
    with pytest.raises(ValueError, match=f'^"{"x" * 64}" is no port'):
        split_url(f"tcp://127.0.0.1:{'x' * 100}")
