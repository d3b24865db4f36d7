"""The record of a status page: which addresses it may have, and who may read it."""

import pytest

from bus.transports.options import Tls
from topologies.model.status import PLAIN, StatusSpec, check_page, place_of, tcp_url

CERT = Tls(cert_file="c.pem")
PROVEN = Tls(cert_file="c.pem", ca_file="ca.pem", require_peer_cert=True)
OPEN, SECURE, LOCAL = "http://0.0.0.0:8080", "https://0.0.0.0:8080", "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://127.0.0.1:0", ("127.0.0.1", 0)),
        ("http://127.0.0.1:65535/", ("127.0.0.1", 65535)),
        ("https://plant:1", ("plant", 1)),
        ("http://[::1]:9943", ("::1", 9943)),
    ],
)
def test_an_address_of_a_page_has_a_host_and_a_port(url: str, place: tuple[str, int]) -> None:
    check_page(url)
    assert place_of(url) == place


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("tcp://127.0.0.1:1", "no address of a page"),
        ("127.0.0.1:1", "no address of a page"),
        ("http://127.0.0.1", "has no port: write one such as http://"),
        ("https://[::1]", "has no port: write one such as http://"),
        ("http://plant:", "has no port: write one such as http://"),
        ("http://127.0.0.1:65536", "up to 65535"),
        ("http://127.0.0.1:-1", "up to 65535"),
        ("http://127.0.0.1:1/page", "no address of a page"),
        ("http://127.0.0.1:1?page", "no address of a page"),
        ("http://a b:1", "without spaces"),
        ("http://:1", "no host"),
        ("http://*:1", "is no host"),
    ],
)
def test_another_text_is_none(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_page(url)


def test_the_address_of_a_page_has_the_form_of_that_of_a_bus() -> None:
    assert tcp_url("https://plant:1/") == "tcp://plant:1"


def test_by_default_there_is_a_page_for_this_machine_only() -> None:
    assert (PLAIN.address, PLAIN.serve, PLAIN.open) == ("http://127.0.0.1:9943", True, False)
    assert (PLAIN.is_local, PLAIN.proves) == (True, False)


@pytest.mark.parametrize(
    ("settings", "is_local", "proves"),
    [
        ({"listen": LOCAL}, True, False),
        ({"listen": OPEN, "open": True}, False, False),
        ({"listen": OPEN, "token_file": "/t"}, False, False),
        ({"listen": SECURE, "tls": CERT, "open": True}, False, False),
        ({"listen": SECURE, "tls": CERT, "token_file": "/t"}, False, False),
        ({"listen": SECURE, "tls": PROVEN}, False, True),
        ({"listen": "https://127.0.0.1:1", "tls": CERT}, True, False),
    ],
)
def test_a_page_beyond_loopback_is_open_or_asks_for_a_token_or_a_certificate(
    settings: dict[str, object], is_local: bool, proves: bool
) -> None:
    page = StatusSpec(**settings)  # type: ignore[arg-type]
    assert (page.is_local, page.proves) == (is_local, proves)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"listen": OPEN}, "can be reached by other machines"),
        ({"listen": SECURE, "tls": CERT}, "can be reached by other machines"),
        ({"listen": SECURE, "open": True}, "https:// needs tls"),
        ({"listen": SECURE, "open": True, "tls": Tls(ca_file="ca.pem")}, "https:// needs tls"),
        ({"listen": LOCAL, "tls": CERT}, "tls is for https:// only"),
        ({"tls": CERT}, "tls is for https:// only"),
    ],
)
def test_a_page_that_everybody_could_read_or_that_cannot_be_secure_is_refused(
    settings: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        StatusSpec(**settings)  # type: ignore[arg-type]
