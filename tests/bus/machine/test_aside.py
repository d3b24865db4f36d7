"""Tests of work beside the event loop: what hangs is given up, and holds up nothing else."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from bus.machine.aside import THREADS_MAX, NoAnswer, aside, in_thread, within
from bus.machine.touch import touching
from bus.machine.wake_hook import WakefulLoop

LIMIT_S = 0.05


def hung(ended: threading.Event) -> Callable[[], None]:
    def call() -> None:
        with touching("/mnt/plant/key"):
            ended.wait(20.0)

    return call


def test_what_waits_for_a_file_is_given_up_and_names_it() -> None:
    ended = threading.Event()

    async def main() -> None:
        for _ in range(3):  # those that hang hold up no others
            with pytest.raises(NoAnswer, match=r"/mnt/plant/key: did not answer within 0\.05 s"):
                await aside(hung(ended), LIMIT_S)
        assert await aside(lambda: 7) == 7
        assert await asyncio.to_thread(lambda: 8) == 8

    try:
        with asyncio.Runner(loop_factory=WakefulLoop) as runner:
            runner.run(main())  # and its end does not wait for them
    finally:
        ended.set()


def test_it_is_so_where_no_loop_runs() -> None:
    ended = threading.Event()
    with pytest.raises(NoAnswer, match="did not answer"):
        within(hung(ended), LIMIT_S)
    ended.set()
    assert within(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(lambda: 1 // 0)


async def test_work_that_takes_long_is_not_given_up() -> None:
    ended = threading.Event()
    asyncio.get_running_loop().call_later(4 * LIMIT_S, ended.set)
    assert await aside(lambda: ended.wait(20.0), LIMIT_S)


async def test_errors_come_to_the_one_who_asked() -> None:
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        await in_thread(asyncio.get_running_loop(), lambda: 1 // 0)


def test_an_end_that_comes_after_the_loop_is_no_error() -> None:
    ended = threading.Event()

    async def main() -> None:
        in_thread(asyncio.get_running_loop(), hung(ended))

    asyncio.run(main())
    before = threading.active_count()
    ended.set()
    for thread in threading.enumerate():
        if thread.name == "aside":
            thread.join(20.0)
    assert threading.active_count() < before


def test_beyond_the_bound_a_future_has_the_refusal_and_nothing_is_raised() -> None:
    ended = threading.Event()

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
