from collections.abc import Iterator
from pathlib import Path

import pytest

from bridges.bridge import Bridge
from bus.balance import imbalances
from bus.hub import Hub, Pipe, chain
from bus.watch.watched import WatchedHub
from tests.bridges.support import PtyPair


@pytest.fixture
def line(tmp_path: Path) -> Iterator[PtyPair]:
    pair = PtyPair(tmp_path / "ttyTEST")
    yield pair
    pair.close()


@pytest.fixture(params=["thread", "loop"])
def blocks(request: pytest.FixtureRequest) -> bool:
    """Return whether the I2C adapter blocks, and so needs a thread."""
    return bool(request.param == "thread")


@pytest.fixture(autouse=True)
def ledgers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check after every test: each pipe that was ever on a hub balances, and so do hubs that pass on."""
    hubs, pipes = dict[int, Hub](), dict[int, Pipe]()
    attach = Hub.attach

    def noted(hub: Hub, pipe: Pipe) -> None:
        hubs[id(hub)], pipes[id(pipe)] = hub, pipe
        attach(hub, pipe)

    monkeypatch.setattr(Hub, "attach", noted)
    yield
    assert imbalances(hub for hub in hubs.values() if type(hub) in (Hub, WatchedHub, Bridge)) == []
    every = [one for pipe in pipes.values() for one in chain(pipe)]
    assert [one.name for one in every if one.stats.balance()] == []
