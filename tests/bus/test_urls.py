"""Addresses and hosts as people write them, right and wrong."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.urls import (
    OwnHosts,
    Url,
    are_loopback,
    check_broker,
    check_dial,
    check_dialled_broker,
    check_ends,
    check_host,
    check_listen,
    check_listening_broker,
    check_peer,
    host_in,
    is_ip,
    is_loopback,
    is_wildcard,
    overlap,
    split_url,
    with_host,
)


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


@pytest.mark.parametrize("address", ["::1:5555", "fe80::1", "2001:db8::7:9942"])
def test_an_ipv6_address_without_brackets(address: str) -> None:
    with pytest.raises(ValueError, match=r"^write an IPv6 address in brackets, as in \[::1\]:5555$"):
        split_url(f"tcp://{address}")


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


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("ipc:///run/bus", Url("ipc", "", 0, "/run/bus")),
        ("ipc://" + "a" * 107, Url("ipc", "", 0, "a" * 107)),
        ("ipc://" + "a" * 105 + "\u00fc", Url("ipc", "", 0, "a" * 105 + "\u00fc")),
        ("inproc://" + "a" * 108, Url("inproc", "", 0, "a" * 108)),
        ("beacon://plant", Url("beacon", "", 0, "plant")),
        ("tcp://h:0", Url("tcp", "h", 0, "")),
        ("tcp://h:65535/", Url("tcp", "h", 65535, "/")),
        ("ws://h:5/" + "a" * 1015, Url("ws", "h", 5, "/" + "a" * 1015)),
    ],
)
def test_the_parts_of_an_address(text: str, url: Url) -> None:
    assert split_url(text) == url


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ws://h:5/" + "a" * 1016, "an address is at most 1024 printable characters without spaces"),
        ("ipc://a b", "an address is at most 1024 printable characters without spaces"),
        ("ipc://a\x07", "an address is at most 1024 printable characters without spaces"),
        ("ipc://", "ipc:// needs a path"),
        ("inproc://", "inproc:// needs a name"),
        ("ipc://" + "a" * 108, "the path of a Unix socket is at most 107 bytes"),
        ("ipc://" + "a" * 106 + "\u00fc", "the path of a Unix socket is at most 107 bytes"),
        ("tcp://me@h:5", "write tcp://HOST:PORT, without user, query and fragment"),
        ("ws://h:5?a", "write ws://HOST:PORT, without user, query and fragment"),
        ("ws://h:5#a", "write ws://HOST:PORT, without user, query and fragment"),
        ("tcp://h:5/a", "tcp:// does not take a path"),
        ("tcp://h", "the address has no port: write tcp://HOST:PORT"),
        ("tcp://:5", "the address has no host; 0.0.0.0 stands for all interfaces"),
        ("dial+tcp://h:5", "write tcp://... under dial:, without dial+"),
        (
            "tcp:h:5",
            "an address must start with tcp://, tls+tcp://, ws://, wss://, ipc://, inproc://",
        ),
        (
            "udp://h:5",
            "an address must start with tcp://, tls+tcp://, ws://, wss://, ipc://, inproc://",
        ),
    ],
)
def test_what_is_no_address_says_why(text: str, reason: str) -> None:
    assert _fault(split_url, text) == reason


@pytest.mark.parametrize(("last", "fits"), [(61, True), (62, False)])
def test_a_host_name_has_at_most_253_characters(last: int, fits: bool) -> None:
    assert (_fault(check_host, ".".join(["a" * 63] * 3 + ["a" * last])) == "") == fits


@pytest.mark.parametrize("host", ["-" * 100, "1" * 100])
def test_a_long_host_is_said_in_part(host: str) -> None:
    with pytest.raises(ValueError, match=f'^"{host[:64]}" is no host'):
        check_host(host)


def _fault(check: Callable[[str], object], text: str) -> str:
    """Return what a check finds wrong; "" if nothing is."""
    try:
        check(text)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (check_peer, ["10.0.0.1", "gw-a", "::1"], ["0.0.0.0", "::", "-"]),
        (check_listen, ["tcp://h:0", "tcp://*:1", "ipc://a"], ["beacon://plant", "tcp://h"]),
        (
            check_dial,
            ["tcp://h:1", "ipc://a", "inproc://a", "beacon://plant", "wss://[::1]:5"],
            ["tcp://h:0", "tcp://*:5", "ws://0.0.0.0:5"],
        ),
        (
            check_broker,
            ["tcp://h:1", "tcp://10.0.0.1:5", "tcp://*:5"],
            ["tcp://h:0", "tcp://[::1]:5", "tls+tcp://h:5", "ipc://a"],
        ),
        (
            check_listening_broker,
            ["tcp://h:1", "tls+tcp://h:1", "tls+tcp://*:1"],
            ["tls+tcp://h:0", "tls+tcp://[::1]:5", "wss://h:5", "ipc://a"],
        ),
        (check_dialled_broker, ["tcp://h:1"], ["tcp://*:5", "tls+tcp://h:5", "ipc://a"]),
    ],
)
def test_an_address_fits_its_use(check: Callable[[str], None], good: list[str], bad: list[str]) -> None:
    assert [text for text in good if _fault(check, text)] == []
    assert [text for text in bad if not _fault(check, text)] == []


@pytest.mark.parametrize(
    ("host", "ip", "wildcard", "loopback"),
    [
        ("10.0.0.1", True, False, False),
        ("0.0.0.0", True, True, False),
        ("::", True, True, False),
        ("*", False, True, False),
        ("gw-a", False, False, False),
        ("127.0.0.2", True, False, True),
        ("::1", True, False, True),
        ("localhost", False, False, True),
        ("a.localhost", False, False, True),
        ("localhost.plant", False, False, False),
    ],
)
def test_kinds_of_hosts(host: str, ip: bool, wildcard: bool, loopback: bool) -> None:
    assert (is_ip(host), is_wildcard(host), is_loopback(host)) == (ip, wildcard, loopback)


@pytest.mark.parametrize(
    ("hosts", "found"),
    [([], False), (["localhost", "::1"], True), (["localhost", "h"], False), (["h"], False)],
)
def test_hosts_of_this_machine_only_are_some_and_all(hosts: list[str], found: bool) -> None:
    assert are_loopback(hosts) == found


@pytest.mark.parametrize(
    ("netloc", "host"),
    [
        ("H:5", "h"),
        ("h", "h"),
        ("[0::1]:5", "::1"),
        ("a_b.c-d:", "a_b.c-d"),
        *(
            (text, "")
            for text in (":5", "[x", "a\x07:5", "", "u@h", "h@u@h:1", "h, g", "h:1,g", "h/g", "h#g")
        ),
        *((text, "") for text in ("h?g", "h\\g", "[::1].h", "[::1]h", "h:x", "%68", "\uff11", "h g", "h\n")),
    ],
)
def test_the_host_before_a_port(netloc: str, host: str) -> None:
    assert host_in(netloc) == host


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("localhost", "127.0.0.1", True),
        ("localhost", "10.0.0.1", False),
        ("::", "10.0.0.1", True),
        ("*", "10.0.0.1", True),
        ("*", "::1", True),
        ("0.0.0.0", "10.0.0.1", True),
        ("0.0.0.0", "localhost", True),
        ("0.0.0.0", "::1", False),
        ("::1", "10.0.0.1", False),
    ],
)
def test_two_listeners_on_one_port_conflict_if_one_address_is_of_both(
    one: str, other: str, conflict: bool
) -> None:
    assert overlap(one, other) == overlap(other, one) == conflict


def test_an_address_gets_another_host() -> None:
    url = split_url("ws://h:5/a")
    assert with_host(url, "10.0.0.1") == "ws://10.0.0.1:5/a"
    assert with_host(url, "::1") == "ws://[::1]:5/a"


@pytest.mark.parametrize(
    ("dials", "listens", "why"),
    [
        (["tcp://127.0.0.1:5"], ["tcp://127.0.0.1:5"], "hear itself"),
        (["tcp://localhost:5"], ["tcp://127.0.0.1:5"], "hear itself"),
        (["tcp://127.0.0.1:5"], ["tcp://0.0.0.0:5"], "hear itself"),
        (["tcp://[::1]:5"], ["tcp://[::]:5"], "hear itself"),
        (["tcp://10.0.0.7:5"], ["tcp://10.0.0.7:5"], "hear itself"),
        (["ipc:///tmp/a"], ["ipc:///tmp/a"], "hear itself"),
        (["inproc://a"], ["inproc://a"], "hear itself"),
        (["ws://127.0.0.1:5/a"], ["ws://*:5/a"], "hear itself"),
        (["tcp://10.0.0.7:5", "tcp://10.0.0.7:5"], [], "twice"),
        (["ipc:///tmp/a"] * 2, [], "twice"),
        (["tcp://10.0.0.7:5"], ["tcp://0.0.0.0:5"], ""),  # perhaps another machine's
        (["tcp://127.0.0.1:5"], ["tcp://10.0.0.7:5"], ""),
        (["tcp://127.0.0.1:6"], ["tcp://127.0.0.1:5"], ""),
        (["tcp://127.0.0.1:5"], ["tcp://127.0.0.1:0"], ""),
        (["ws://127.0.0.1:5/a"], ["ws://127.0.0.1:5/b"], ""),
        (["tcp://10.0.0.7:5", "tcp://10.0.0.8:5", "tcp://10.0.0.7:6"], [], ""),
    ],
)
def test_two_connections_between_one_pair_are_refused(dials: list[str], listens: list[str], why: str) -> None:
    if why:
        with pytest.raises(ValueError, match=why) as caught:
            check_ends(dials, listens)
        assert str(caught.value).startswith(dials[0])
    else:
        check_ends(dials, listens)


def test_a_host_is_our_own_by_its_address_or_one_of_our_names() -> None:
    own = OwnHosts(["Gw-A.plant.example"])
    assert [host in own for host in ("10.0.0.1", "localhost", "gw-a.plant.example")] == [True] * 3
    assert [host in own for host in ("evil.example", "gw-b.plant.example")] == [False] * 2
