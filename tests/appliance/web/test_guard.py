"""Who may read a page: by which hosts it is called, pages of others, and the token in each of its places."""

from typing import Any

import pytest

from appliance.web.guard import Guard
from appliance.web.messages import Request, Response
from appliance.web.people import check_token

TOKEN = "a-token_of-20-letters"
OPEN, CLOSED = Guard(["Plant", "192.0.2.7"]), Guard(["plant"], TOKEN)


def refused(
    guard: Guard = OPEN,
    path: str = "/status",
    host: str = "localhost:1",
    headers: dict[str, str] | None = None,
) -> int:
    """Return the status of a refusal, 0 if there is none. In names of headers, `_` stands for `-`."""
    return status(guard.refusal(request(path, (host,), headers)))


def request(
    path: str = "/",
    hosts: tuple[str, ...] = ("localhost",),
    headers: dict[str, str] | None = None,
    **query: str,
) -> Request:
    named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
    return Request("GET", path, query, named, hosts)


def status(answer: Response | None) -> int:
    return 0 if answer is None else int(answer.status)


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9943", "127.0.0.1", "[::1]:1", "192.0.2.9:1", "plant", "PLANT:80"]
)
def test_it_is_called_by_its_names_and_by_addresses(host: str) -> None:
    assert refused(host=host) == 0


@pytest.mark.parametrize("host", ["plant.example", "evil.example:9943", "localhost.evil.example"])
def test_another_name_may_be_that_of_a_hostile_page(host: str) -> None:
    assert refused(host=host) == 403


@pytest.mark.parametrize("hosts", [(), ("localhost", "localhost"), ("",), (":1",)])
def test_a_request_has_one_host(hosts: tuple[str, ...]) -> None:
    assert status(OPEN.refusal(request(hosts=hosts))) == 400


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({}, 0),
        ({"origin": "http://localhost:1"}, 0),
        ({"origin": "HTTP://LOCALHOST:1"}, 0),
        ({"origin": "http://localhost:2"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors"}, 0),
        ({"sec_fetch_site": "none"}, 0),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"}, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 0),
        ({"origin": "http://evil.example", "sec_fetch_mode": "navigate"}, 403),
    ],
)
def test_a_page_of_another_host_may_link_to_it_and_read_nothing(headers: dict[str, str], answer: int) -> None:
    assert refused(headers=headers) == answer


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({}, 401),
        ({"authorization": f"Bearer {TOKEN}"}, 0),
        ({"authorization": f"bearer {TOKEN}"}, 0),
        ({"authorization": TOKEN}, 0),
        ({"authorization": "Bearer another-token-12345"}, 401),
        ({"cookie": f"buscoupler_token={TOKEN}"}, 0),
        ({"cookie": f"a=b; buscoupler_token={TOKEN} ;c=d"}, 0),
        ({"cookie": f"a={TOKEN}; buscoupler_token=x"}, 401),
        ({"authorization": "Bearer é", "cookie": "buscoupler_token=é"}, 401),
    ],
)
def test_a_reader_shows_the_token_in_a_header_or_a_cookie(headers: dict[str, str], answer: int) -> None:
    assert refused(CLOSED, headers=headers) == answer


def test_health_needs_no_token_but_a_name_of_this_host() -> None:
    assert refused(CLOSED, "/healthz") == 0
    assert refused(CLOSED, "/ready") == 401
    assert refused(CLOSED, "/healthz", "evil.example") == 403


def test_a_refusal_for_want_of_the_token_says_how_to_show_it() -> None:
    answer = CLOSED.refusal(request())
    assert answer is not None
    assert answer.headers == (("WWW-Authenticate", 'Bearer realm="buscoupler"'),)
    assert b"open /?token=TOKEN once" in answer.body


@pytest.mark.parametrize(("secure", "more"), [(False, ""), (True, "; Secure")])
def test_the_token_in_the_address_of_the_page_becomes_a_cookie(secure: bool, more: str) -> None:
    answer = Guard([], TOKEN, secure).refusal(request(token=TOKEN))
    assert answer is not None
    assert (answer.status, dict(answer.headers)) == (
        303,
        {
            "Location": "/",
            "Set-Cookie": f"buscoupler_token={TOKEN}; Path=/; HttpOnly; SameSite=Strict{more}",
        },
    )


def test_by_default_the_cookie_is_for_http_too_and_there_is_no_token() -> None:
    answer = CLOSED.refusal(request(token=TOKEN))
    assert answer is not None
    assert "Secure" not in dict(answer.headers)["Set-Cookie"]
    assert refused(OPEN) == 0


@pytest.mark.parametrize(
    ("path", "token"), [("/", "wrong"), ("/", ""), ("/status", TOKEN), ("/metrics", TOKEN)]
)
def test_a_wrong_token_or_another_address_with_it_gets_no_cookie(path: str, token: str) -> None:
    assert status(CLOSED.refusal(request(path, token=token))) == 401


@pytest.mark.parametrize("token", ["a" * 16, "a" * 256, "A-z_0" + "9" * 11, " " + "a" * 16 + "\n"])
def test_a_token_has_16_to_256_letters(token: str) -> None:
    assert check_token(token) == token.strip()


@pytest.mark.parametrize("token", ["", "a" * 15, "a" * 257, "é" * 20, "a b" * 10, "a;" * 10, "-" * 20])
def test_what_is_shorter_longer_or_cannot_be_sent_is_no_token(token: Any) -> None:
    with pytest.raises(ValueError, match="16 to 256 of A to Z, a to z, 0 to 9, - and _"):
        check_token(token)
