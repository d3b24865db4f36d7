"""The runner of a service."""

import platform
import subprocess
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Iterable

import pytest

from appliance.commandline.cli import main
from appliance.process.serve import SWITCH_S, serve
from bus.hub import Hub
from bus.machine.busy_poll import BusyPoll, default_us
from bus.machine.wake_hook import WakefulLoop


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


@pytest.fixture
def limits_us(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the limits of looking that loops of services are made with. None of them runs."""
    told: list[int] = []

    def run_loop(service: Coroutine[None, None, int], make: Callable[[], WakefulLoop]) -> int:
        service.close()
        make().close()
        return 0

    monkeypatch.setattr(BusyPoll, "revise", lambda _, limit_us: told.append(limit_us))
    monkeypatch.setattr("appliance.process.serve.run_loop", run_loop)
    return told


@pytest.mark.parametrize("command", ["device", "broker", "catalog", "syndicate"])
def test_each_service_without_a_topology_looks_as_long_as_it_is_told(
    command: str, limits_us: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    url = "tcp://127.0.0.1:25299"
    assert main([command, url]) == 0
    assert main([command, "--busy-poll-us", "20", url]) == 0
    assert main([command, "--busy-poll-us", "0", url]) == 0
    assert limits_us == [default_us(), 20, 0]
    for wrong in ("-1", "1001", "1.5", "x"):
        with pytest.raises(SystemExit):
            main([command, f"--busy-poll-us={wrong}", url])
        assert "write a number up to 1000" in capsys.readouterr().err


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
