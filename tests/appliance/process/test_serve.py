"""The runner of a service."""

import platform
import subprocess
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


_FAULTS = """
import resource
from appliance.process.serve import keep_heap

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        batch = [bytes(100_000) for _ in range(4)]
        del batch
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
keep_heap()
faults()
print(given_back, faults())
"""


def test_what_one_batch_frees_is_there_for_the_next() -> None:
    done = subprocess.run([sys.executable, "-c", _FAULTS], capture_output=True, text=True, check=True)
    given_back, kept = map(int, done.stdout.split())
    assert kept < 20
    assert given_back > 50 * kept or platform.libc_ver()[0] != "glibc"
