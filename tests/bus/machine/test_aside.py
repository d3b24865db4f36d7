"""Tests of work beside the event loop: what hangs is given up, and holds up nothing else."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from bus.machine.aside import THREADS_MAX, NoAnswer, aside, in_thread, within
from bus.machine.touch import touching
from bus.machine.wake_hook import WakefulLoop

LIMIT_S = 0.05


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "aside"]


@pytest.fixture
def ended() -> Iterator[threading.Event]:
    """An event that ends all that is hung. No such thread is there before, or after: they count together."""
    for thread in threads():
        thread.join()
    event = threading.Event()
    yield event
    event.set()
    for thread in threads():
        thread.join()


def hung(ended: threading.Event) -> Callable[[], None]:
    """Return work without a time of its own: on a busy machine the first would end before the last begins."""

    def call() -> None:
        with touching("/mnt/plant/key"):
            ended.wait()

    return call


def test_what_waits_for_a_file_is_given_up_and_names_it(ended: threading.Event) -> None:
    async def main() -> None:
        for _ in range(3):  # those that hang hold up no others
            with pytest.raises(NoAnswer, match=r"/mnt/plant/key: did not answer within 0\.05 s"):
                await aside(hung(ended), LIMIT_S)
        assert await aside(lambda: 7) == 7
        assert await asyncio.to_thread(lambda: 8) == 8

    with asyncio.Runner(loop_factory=WakefulLoop) as runner:
        runner.run(main())  # and its end does not wait for them


def test_it_is_so_where_no_loop_runs(ended: threading.Event) -> None:
    with pytest.raises(NoAnswer, match="did not answer"):
        within(hung(ended), LIMIT_S)
    ended.set()
    assert within(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(lambda: 1 // 0)


async def test_work_that_takes_long_is_not_given_up(ended: threading.Event) -> None:
    asyncio.get_running_loop().call_later(4 * LIMIT_S, ended.set)
    assert await aside(lambda: ended.wait(), LIMIT_S)


async def test_errors_come_to_the_one_who_asked() -> None:
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        await in_thread(asyncio.get_running_loop(), lambda: 1 // 0)


def test_an_end_that_comes_after_the_loop_is_no_error(ended: threading.Event) -> None:
    async def main() -> None:
        in_thread(asyncio.get_running_loop(), hung(ended))

    asyncio.run(main())
    (thread,) = threads()
    ended.set()
    thread.join()  # what it raised would be a warning, and so an error


def test_beyond_the_bound_a_future_has_the_refusal_and_nothing_is_raised(ended: threading.Event) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        hanging = [in_thread(loop, hung(ended)) for _ in range(THREADS_MAX)]
        refused = loop.run_in_executor(None, int)
        with pytest.raises(NoAnswer, match=f"{THREADS_MAX} threads do not come to an end"):
            await refused
        ended.set()
        await asyncio.gather(*hanging)
        assert await loop.run_in_executor(None, int) == 0

    with asyncio.Runner(loop_factory=WakefulLoop) as runner:
        runner.run(main())


async def test_a_thread_that_cannot_begin_is_a_refusal_and_takes_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(THREADS_MAX + 1):
            with pytest.raises(NoAnswer, match="can't start new thread"):
                await in_thread(loop, int)
    assert await in_thread(loop, int) == 0


def refuse(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
