"""A connection that is made again and again."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bus.transports.redialling import Redialling
from tests.helpers.peers import until


class Peer:
    """A peer that takes connections if it `is_there`, each of which ends with an `end`."""

    def __init__(self, pause_s: float) -> None:
        self.is_there, self.tries, self.served = False, 0, 0
        self.faults, self.lasted = list[str](), list[bool]()
        self.ends = asyncio.Queue[bool | OSError]()
        self.pause_s = pause_s
        self.redialling = Redialling(self._connect, self._serve, self._failed, self._after)

    async def _connect(self) -> None:
        self.tries += 1
        if not self.is_there:
            raise OSError("it is not there")

    async def _serve(self, _: None) -> bool:
        self.served += 1
        end = await self.ends.get()
        if isinstance(end, OSError):
            raise end
        return end

    def _failed(self, error: OSError | UnicodeError) -> None:
        self.faults.append(str(error))

    def _after(self, lasted: bool) -> float:
        self.lasted.append(lasted)
        return self.pause_s


@contextmanager
def dialled(peer: Peer) -> Iterator[None]:
    task = asyncio.get_running_loop().create_task(peer.redialling.run())
    yield
    task.cancel()


async def test_it_goes_on_whether_there_is_no_connection_or_one_that_ends_or_fails() -> None:
    peer = Peer(0.001)
    with dialled(peer):
        await until(lambda: len(peer.faults) > 2)
        peer.is_there = True
        await until(lambda: peer.served == 1)
        before = len(peer.lasted)
        for end in (True, OSError("it broke"), False):
            peer.ends.put_nowait(end)
        await until(lambda: peer.served == 4)
    assert peer.lasted[before:] == [True, False, False]
    assert peer.faults[-1] == "it broke"


async def test_a_pause_ends_at_once_if_it_is_hurried() -> None:
    peer = Peer(3600.0)
    with dialled(peer):
        await until(lambda: len(peer.lasted) == 1)
        peer.redialling.hurry()
        await until(lambda: len(peer.lasted) == 2)
        assert peer.tries == 2


@pytest.mark.parametrize("is_there", [True, False])
async def test_who_hurries_while_an_attempt_is_made_gets_another_only_if_it_fails(is_there: bool) -> None:
    peer = Peer(3600.0)
    peer.is_there = True
    with dialled(peer):
        await until(lambda: peer.served == 1)
        peer.redialling.hurry()
        peer.ends.put_nowait(True if is_there else OSError("it broke"))
        await until(lambda: peer.lasted == [is_there])
        for _ in range(5):
            await asyncio.sleep(0)
        assert peer.tries == (1 if is_there else 2)
