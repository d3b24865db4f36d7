"""A node that dials where nobody listens, and is connected to itself by chance, has no connection."""

from typing import Any

import pytest

from bus.embedded import buscoupler_node, buscoupler_tmq
from tests.bus.embedded.support import small_node
from tests.bus.embedded.tmq_board import Board
from tests.helpers.own_end import dial_themselves, may_listen
from tests.helpers.peers import until
from tests.helpers.ports import free_port

SMALL: Any = small_node(["tcp", "tmq"])


@pytest.fixture(autouse=True)
def chance(monkeypatch: pytest.MonkeyPatch) -> None:
    dial_themselves(monkeypatch)


@pytest.mark.parametrize("module", [buscoupler_node, SMALL])
def test_a_stream(module: Any) -> None:
    port = free_port()
    tcp = module.Tcp("127.0.0.1", port)
    assert tcp.poll() is None
    assert "refused" in tcp.fault
    assert not tcp.send(b"1")
    assert may_listen(port)


@pytest.mark.parametrize("module", [buscoupler_tmq, SMALL])
async def test_a_client_of_tmq(module: Any) -> None:
    port = free_port()
    async with Board(("127.0.0.1", port), module=module) as board:
        board.subscribe(1)
        await until(lambda: board.link.fault)
        assert "refused" in board.link.fault
        assert board.link.broker is None
    assert may_listen(port)
