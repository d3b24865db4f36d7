"""A request to a port at which nobody listens is refused, also if it is connected to itself by chance."""

import pytest

from appliance.posting import post
from appliance.status.remote import ask_page
from tests.helpers.own_end import dial_themselves
from tests.helpers.ports import free_port


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    dial_themselves(monkeypatch)
    return f"http://127.0.0.1:{free_port()}"


def test_a_post(url: str) -> None:
    with pytest.raises(ConnectionRefusedError):
        post(url, b"{}", {}, 5.0)


def test_a_status_page(url: str) -> None:
    with pytest.raises(ConnectionRefusedError):
        ask_page(url)
