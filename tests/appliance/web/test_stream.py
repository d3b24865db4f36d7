"""The stream of events to open pages: each status is made into bytes once, whatever the pages."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from appliance.compose import Appliance
from appliance.web import stream
from appliance.web.stream import Stream
from tests.appliance.status.status_support import TEXT
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from topologies.loading.loader import loads


class Page:
    """A page that keeps what it is given."""

    waiting_bytes = 0

    def __init__(self) -> None:
        self.given = list[bytes]()

    def give(self, data: bytes) -> None:
        self.given.append(data)

    def close(self) -> None: ...


@pytest.fixture
def appliance() -> Iterator[Appliance]:
    one = appliance_of(loads(TEXT, "t.yaml"), "gw-a")
    yield one
    one.close()


async def test_each_status_is_encoded_once_and_of_the_whole_only_for_a_new_page(
    appliance: Appliance, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded, encode = list[bytes](), stream.event

    def counted(fields: Any) -> bytes:
        encoded.append(encode(fields))
        return encoded[-1]

    monkeypatch.setattr(stream, "event", counted)
    monkeypatch.setattr(stream, "TICK_S", 0.0)
    one, pages = Stream(appliance.view(), asyncio.get_running_loop(), lambda: None), [Page(), Page()]
    for page in pages:
        one.add(page)
    await until(lambda: len(pages[0].given) >= 3)
    late = Page()
    one.add(late)
    await until(lambda: len(late.given) >= 2)
    one.close()
    assert pages[0].given == pages[1].given
    assert late.given[0] in encoded
    assert late.given[0] not in pages[0].given
    assert len(encoded) <= len(pages[0].given) + 2  # that of the late page, and one not yet given
