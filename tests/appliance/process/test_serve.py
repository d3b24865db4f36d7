"""The runner of a service."""

import sys
from asyncio import AbstractEventLoop
from collections.abc import Iterable

import pytest

from appliance.process.serve import SWITCH_S, serve
from bus.hub import Hub


class Still:
    """A service that does nothing."""

    def __init__(self) -> None:
        self.switch_s = 0.0

    def open(self, loop: AbstractEventLoop) -> None:
        self.switch_s = sys.getswitchinterval()

    def close(self) -> None: ...

    async def opened(self) -> None: ...

    def hubs(self) -> Iterable[Hub]:
        return ()


def test_threads_give_way_to_the_loop_of_a_service_sooner_than_python_asks_of_them() -> None:
    service, before_s = Still(), sys.getswitchinterval()
    assert serve(service, lambda: None, limit_s=0) == 0
    assert service.switch_s == pytest.approx(SWITCH_S)
    assert SWITCH_S < before_s == sys.getswitchinterval()
