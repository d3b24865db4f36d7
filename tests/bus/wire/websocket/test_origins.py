"""Which browser pages are let in, by the `Origin` and `Host` of their request."""

import pytest

from bus.wire.websocket.origins import Origins, check_origin

ALLOWED = ("https://panel.example", "http://other.example:8080", "null", "chrome-extension://abcdef")


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, "anything"),  # no browser
        ("http://127.0.0.1:8000", "127.0.0.1:25401"),
        ("https://127.0.0.1", "127.0.0.1:25401"),
        ("http://[::1]:8000", "[0:0::1]:25401"),
        ("http://localhost:8000", "localhost:25401"),
        ("http://LOCALHOST", "localhost:25401"),
        ("http://gw-a:80", "gw-a:25401"),
        ("http://Plant.Example", "plant.example"),
        ("https://panel.example", "gw-a:25401"),
        ("HTTPS://panel.example:443", "whatever.example"),
        ("http://other.example:8080", "gw-a"),
        ("null", "gw-a"),
        ("chrome-extension://abcdef", "gw-a"),
    ],
)
def test_let_in(origin: str | None, host: str) -> None:
    assert Origins(ALLOWED, ("gw-a", "plant.example")).refusal(origin, host) == ""


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://evil.example", "127.0.0.1:25401"),
        ("http://evil.example", "gw-a:25401"),
        ("http://evil.example:25401", "evil.example:25401"),  # DNS rebinding
        ("https://panel.example.evil.example", "gw-a"),
        ("http://panel.example", "gw-a"),  # another scheme
        ("http://other.example", "gw-a"),  # another port
        ("http://127.0.0.1.evil.example", "127.0.0.1"),
        ("http://127.0.0.1@evil.example", "127.0.0.1"),
        ("null", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("http://", ""),
        ("http://[", "["),
        ("garbage", "garbage"),
        ("http://evil.example\x1b[2J", "gw-a"),
    ],
)
def test_refused(origin: str, host: str) -> None:
    refusal = Origins(ALLOWED[:2], ("gw-a", "plant.example")).refusal(origin, host)
    assert "origins" in refusal
    assert refusal.isprintable()
    assert len(refusal) < 300


def test_a_page_of_a_name_that_is_not_ours_is_told_which_it_is() -> None:
    refusal = Origins().refusal("http://evil.example", "evil.example:25401")
    assert refusal.startswith("evil.example is no name of this bus")


@pytest.mark.parametrize("text", ["http://a.example", "https://[::1]:8443", "null", "chrome-extension://abc"])
def test_what_is_an_origin(text: str) -> None:
    check_origin(text)


@pytest.mark.parametrize(
    "text", ["", "*", "panel.example", "http://a.example/", "http://u@a.example", "http://a:x", "http://a..b"]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"no origin|no host"):
        check_origin(text)
