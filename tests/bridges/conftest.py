from collections.abc import Iterator
from pathlib import Path

import pytest

from bridges.ledger import imbalances
from bus.hub import Hub, Pipe, chain
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
    """Check after every test: each pipe that was ever on a hub balances, and so do pipes and their ports."""
    hubs, pipes = dict[int, Hub](), dict[int, Pipe]()
    attach = Hub.attach

    def noted(hub: Hub, pipe: Pipe) -> None:
        hubs[id(hub)], pipes[id(pipe)] = hub, pipe
        attach(hub, pipe)

    monkeypatch.setattr(Hub, "attach", noted)
    yield
    assert imbalances(hub for hub in hubs.values() if {*map(id, hub.pipes)} <= {*pipes}) == []
    every = [one for pipe in pipes.values() for one in chain(pipe)]
    assert [one.name for one in every if one.stats.balance()] == []
