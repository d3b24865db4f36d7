import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from buscoupler_mqtt.medium import Mqtt
from mosquitto import Mosquitto

from bridges.media.shedding import Shed
from bus.balance import imbalances
from tests.conformance.pair import Side

FAST: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.1}
NAMES = ("plant", "temp", "set", "gw")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    started = Mosquitto(tmp_path)
    yield started
    started.kill()


@pytest.fixture
async def side() -> AsyncIterator[Callable[..., Side]]:
    """Makes sides that are open; all are closed in the end."""
    made = list[Side]()

    def make(
        url: str, shed: Shed | None = None, retry: dict[str, Any] = FAST, mates: int = 0, **settings: Any
    ) -> Side:
        record = Mqtt(url=url, **settings)
        one = Side(f"side {len(made)}", lambda: record.link(shed=shed, names=NAMES, mates=mates, **retry))
        made.append(one)
        one.open()
        return one

    yield make
    for one in made:
        one.close()
    await asyncio.sleep(0)
    assert not any(stats.balance() for one in made for stats in one.hub.ledgers)
    assert imbalances([one.hub for one in made]) == []
