"""The status page as a service: what cannot be opened now is opened at a later reload."""

import asyncio
import errno
import logging
from typing import Any

import pytest

from appliance.status.view import View
from appliance.web import service
from appliance.web.service import StatusPage, prepare
from topologies.model.status import StatusSpec


async def test_a_page_that_found_no_port_at_all_is_tried_again_at_the_next_reload(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own port is taken, and for another this process has no file descriptor left."""

    def full(family: int, address: tuple[Any, ...]) -> None:
        raise OSError(errno.EADDRINUSE if address[1] else errno.EMFILE, "")

    page, view, loop = StatusPage("127.0.0.1"), View(program="run", name="x"), asyncio.get_running_loop()
    with monkeypatch.context() as patch:
        patch.setattr(service, "Acceptor", full)
        for _ in range(2):
            page.follow(prepare(StatusSpec()), view, loop)
            assert not page.url
            assert page.report().name == "status page, which could not be opened"
    assert [one.levelno for one in caplog.records if "no status page" in one.message] == [logging.WARNING] * 2
    page.follow(prepare(StatusSpec()), view, loop)
    assert page.url
    page.close()
