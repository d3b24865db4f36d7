"""The status page as a service: what cannot be opened now is opened at a later reload."""

import asyncio
import errno
import logging
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Any

import pytest

from appliance.status.view import View
from appliance.web import service
from appliance.web.service import StatusPage, prepare
from tests.helpers.ports import free_port
from topologies.model.status import StatusSpec


async def test_a_page_that_found_no_port_at_all_is_tried_again_at_the_next_reload(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own port is taken, and for another this process has no file descriptor left."""

    def full(family: int, address: tuple[Any, ...]) -> None:
        raise OSError(errno.EADDRINUSE if address[1] else errno.EMFILE, "")

    page, view, loop = StatusPage(), View(program="run", name="x"), asyncio.get_running_loop()
    with monkeypatch.context() as patch:
        patch.setattr(service, "Acceptor", full)
        for _ in range(2):
            page.follow(prepare(StatusSpec(), "127.0.0.1"), view, loop)
            assert not page.url
            assert page.report().name == "status page, which could not be opened"
    assert [one.levelno for one in caplog.records if "no status page" in one.message] == [logging.WARNING] * 2
    page.follow(prepare(StatusSpec(), "127.0.0.1"), view, loop)
    assert page.url
    page.close()


async def test_a_gateway_with_another_address_is_called_by_that() -> None:
    page, view, loop = StatusPage(), View(program="run", name="x"), asyncio.get_running_loop()
    spec = StatusSpec(listen=f"http://127.0.0.1:{free_port()}")

    async def called(host: str) -> HTTPStatus:
        with ThreadPoolExecutor(1) as thread:
            return await loop.run_in_executor(thread, _status, page.url, host)

    page.follow(prepare(spec, "one.example"), view, loop)
    assert await called("one.example") == HTTPStatus.OK
    page.follow(prepare(spec, "two.example"), view, loop)
    assert [await called(f"{name}.example") for name in ("one", "two")] == [
        HTTPStatus.FORBIDDEN,
        HTTPStatus.OK,
    ]
    page.close()


def _status(url: str, host: str) -> HTTPStatus:
    connection = HTTPConnection(url.removeprefix("http://"), timeout=10)
    connection.request("GET", "/healthz", headers={"Host": host})
    status = connection.getresponse().status
    connection.close()
    return HTTPStatus(status)
