"""What a link needs of its machine: free ports, sockets' paths, names to look up, files of TLS."""

import pytest

from bus.needs import (
    WEB_LIBRARY,
    Authorities,
    Certificate,
    Lasting,
    Library,
    Listening,
    Lookup,
    Need,
    Probe,
    Readable,
    Secret,
    SocketFile,
    dialling_needs,
    host_needs,
    listening_needs,
)
from bus.transports.options import Tls

WEB = Library(*WEB_LIBRARY)


@pytest.mark.parametrize(
    ("url", "needs"),
    [
        ("tcp://10.0.0.1:5", [Listening("10.0.0.1", 5)]),
        ("tcp://10.0.0.1:1", [Listening("10.0.0.1", 1)]),
        ("tcp://10.0.0.1:0", []),
        ("ws://*:5", [Listening("*", 5), WEB]),
        ("wss://*:5", [Listening("*", 5), WEB]),
        ("ipc:///run/bus", [SocketFile("/run/bus")]),
        ("inproc://a", []),
    ],
)
def test_who_listens_needs_a_free_place(url: str, needs: list[Need]) -> None:
    assert list(listening_needs(url)) == needs


@pytest.mark.parametrize(
    ("url", "needs"),
    [
        ("tcp://10.0.0.1:5", []),
        ("tcp://gw-a:5", [Lookup("gw-a")]),
        ("ws://gw-a:5", [Lookup("gw-a"), WEB]),
        ("ipc:///run/bus", []),
        ("beacon://plant", []),
    ],
)
def test_who_dials_needs_to_look_up_a_name(url: str, needs: list[Need]) -> None:
    assert list(dialling_needs(url)) == needs


def test_a_name_is_looked_up_as_an_ipv4_address_only_where_that_is_said() -> None:
    assert list(dialling_needs("tcp://gw-a:5", ipv4=True)) == [Lookup("gw-a", True)]
    assert list(dialling_needs("tcp://gw-a:5")) == list(host_needs("gw-a")) == [Lookup("gw-a", False)]
    assert Lookup("gw-a") == Lookup("gw-a", False)
    assert list(host_needs("*")) == list(host_needs("::1")) == []


@pytest.mark.parametrize(
    ("tls", "needs"),
    [
        (Tls(), []),
        (Tls(ca_file="ca"), [Readable("ca"), Authorities("ca"), Lasting("ca", True)]),
        (
            Tls(cert_file="cert"),
            [Readable("cert"), Lasting("cert"), Certificate("cert", "cert"), Secret("cert")],
        ),
        (
            Tls(ca_file="ca", cert_file="cert", key_file="key"),
            [
                *map(Readable, ("ca", "cert", "key")),
                Authorities("ca"),
                Lasting("ca", True),
                Lasting("cert"),
                Certificate("cert", "key"),
                Secret("key"),
            ],
        ),
    ],
)
def test_tls_needs_its_files_and_that_the_key_is_secret(tls: Tls, needs: list[Need]) -> None:
    assert list(dialling_needs("tls+tcp://10.0.0.1:5", tls)) == needs
    assert list(listening_needs("tls+tcp://10.0.0.1:0", tls)) == needs


def test_a_probe_needs_no_arguments() -> None:
    assert Probe("module:function").arguments == ()
