"""Calls of a service's handlers: each request is answered by the handler of its word."""

import asyncio
import inspect
import logging
from asyncio import Task
from collections.abc import Awaitable, Callable, Mapping

from bus.wire.batch import check_bytes
from devices.dbp.catalog import wire
from devices.dbp.nodes import requests
from devices.dbp.nodes.requests import Request, check_word, refusal

log = logging.getLogger("buscoupler.nodes")

CALLS_MAX = 256
"""The most handlers that wait at a time."""

TOO_LONG = "the answer is too long"

Answer = bytes | str | tuple[bytes, ...] | None
"""The body of a reply: one frame, or several. None is a body without a frame."""
Handler = Callable[[Request], Answer | Awaitable[Answer]]
"""A function that takes a request, and returns the answer; a coroutine function may wait for it."""
Reply = Callable[[Request], bool]
"""A function that sends a reply to the client of a request. It returns False for one that is too long, and
sends nothing."""


class Calls:
    """The handlers of a service by word. `refused` counts refused requests by reason, `served` all others.

    At most `most` handlers wait at a time. An exception of a handler is logged, and the client gets a
    refusal. Raises ValueError for a word that no request can have.
    """

    def __init__(self, name: str, handlers: Mapping[str, Handler], most: int = CALLS_MAX) -> None:
        for word in handlers:
            check_word(word)
        self.refused: dict[str, int] = {}
        self.served = 0
        self._name, self._handlers, self._most = name, dict(handlers), most
        self._running: set[Task[None]] = set()

    def take(self, request: Request, reply: Reply) -> None:
        """Answer a request, now or later."""
        if request.word == wire.PING.decode():
            return self._say(reply, request, Request(wire.PONG.decode(), (self._name.encode(),)))
        handler = self._handlers.get(request.word)
        if handler is None:
            return self._refuse(reply, request, "unknown word")
        if len(self._running) >= self._most:
            return self._refuse(reply, request, "too many requests")
        return self._begin(handler, request, reply)

    def _begin(self, handler: Handler, request: Request, reply: Reply) -> None:
        try:
            answer = handler(request)
        except Exception:
            return self._fail(reply, request)
        if not inspect.isawaitable(answer):
            return self._answer(reply, request, answer)
        task = asyncio.ensure_future(self._wait(answer, request, reply))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _wait(self, answer: Awaitable[Answer], request: Request, reply: Reply) -> None:
        try:
            said = await answer
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._fail(reply, request)  # what the handler waited for was cancelled, and not the call
        except Exception:
            return self._fail(reply, request)
        return self._answer(reply, request, said)

    def _answer(self, reply: Reply, request: Request, answer: Answer) -> None:
        try:
            body = _frames(answer)
        except (TypeError, ValueError):  # neither bytes nor text, or text that is no UTF-8
            return self._fail(reply, request)
        return self._say(reply, request, Request(request.word, body))

    def _say(self, reply: Reply, request: Request, said: Request) -> None:
        if reply(said._replace(binary_time=request.binary_time)):
            self.served += 1
        else:
            self._refuse(reply, request, TOO_LONG)

    def _fail(self, reply: Reply, request: Request) -> None:
        log.exception("%s: the handler of %s failed", self._name, request.word)
        self._refuse(reply, request, "the service failed")

    def _refuse(self, reply: Reply, request: Request, reason: str) -> None:
        self.reject(reason)
        reply(refusal(reason, request.binary_time))

    def reject(self, reason: str) -> None:
        """Count a refused message."""
        self.refused[reason] = self.refused.get(reason, 0) + 1

    def close(self) -> None:
        """Cancel the handlers that wait. Idempotent."""
        for task in tuple(self._running):
            task.cancel()


def _frames(answer: Answer) -> tuple[bytes, ...]:
    if answer is None:
        return ()
    one = answer.encode() if isinstance(answer, str) else answer
    frames = one if isinstance(one, tuple) else (one,)
    for frame in frames:
        check_bytes(frame, "an answer")
    return frames


REASONS = ("unknown word", "too many requests", "the service failed", TOO_LONG, *requests.REFUSED)
"""The reasons of `Calls.refused`."""
