"""A client of a syndication broker on asyncio, of the untagged generation."""

import asyncio
import random
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import ExitStack, closing, suppress
from typing import Any, Final, Self

from bus.backoff import Attempts
from bus.errors import BusError, LinkError, words_of
from bus.serving.lasting import open_stream
from bus.transports.on_the_way import on_the_way_bytes
from bus.transports.sockets import tune
from bus.urls import check_dial, split_url
from devices.syndication.answers import Answer, AnswerCutter, HeldSet, ReceivedPublication, Refusal
from devices.syndication.wire.messages import Difference, pack

Update = Difference | ReceivedPublication
"""A message of the broker to a subscriber."""

_READ_BYTES: Final = 1 << 18
_RETRY_MIN_S, _RETRY_MAX_S = 0.1, 5.0
_LEAST_S: Final = 0.5  # the least time for one attempt: a busy machine is late
_LINGER_S: Final = 1.0
_LOOK_S: Final = 0.005
_DOUBT: Final = "is it a syndication broker?"
_WRONG: Final = re.compile(r"character \d+: ")


class RefusedQuery(BusError, ValueError):
    """The broker refused a query; the text is the broker's.

    `wrong` is True if the text is no query, False if the broker has no room for it.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.wrong = _WRONG.match(text) is not None


def broker_at(url: str) -> str:
    """Return `url`, the address of a broker, unchanged. Raises `LinkError` if it cannot be dialled."""
    try:
        check_dial(url)
    except ValueError as error:
        raise LinkError(f"{url}: {error}") from error
    if split_url(url).scheme != "tcp":
        raise LinkError(f"{url}: a syndication broker is at tcp://HOST:PORT")
    return url


class UnreachedError(LinkError):
    """No broker accepted the connection."""


class Caller:
    """A connection to a broker. It publishes, and subscribes to one query or selection at a time.

    ```
    async with Caller("tcp://gw:4444") as caller:
        await caller.publish("a1", {"Room": "410"}, 21.5)
        await caller.subscribe("has Room")
        async for update in caller: ...  # Difference, ReceivedPublication
    ```
    Data of the broker is read only in `hear`. The end of the block waits up to a second until the broker's
    machine has all that was said. All methods raise `LinkError`, which names the URL: if the URL
    is wrong, the broker cannot be reached or is gone, or another program answers.
    """

    def __init__(self, url: str) -> None:
        self.url = broker_at(url)
        self._cutter = AnswerCutter()
        self._answers = deque[Answer]()
        self._spoke = False

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._arrived()
        finally:
            self.close()

    @property
    def waiting_bytes(self) -> int:
        """The bytes that were said, and have not left this process yet."""
        return int(self._writer.transport.get_write_buffer_size())

    async def _arrived(self) -> None:
        """Wait at most `_LINGER_S` until the broker's machine has all that was said."""
        sock = self._writer.get_extra_info("socket")
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while not self._writer.is_closing() and (
                    self.waiting_bytes or on_the_way_bytes(sock.fileno())
                ):
                    await asyncio.sleep(_LOOK_S)

    async def open(self, connect_s: float = 10.0, turn: int = 0) -> None:
        """Connect within `connect_s` seconds. `turn` is that of `Attempts`."""
        parts = split_url(self.url)
        try:
            async with asyncio.timeout(connect_s):
                opened = await open_stream(parts.host, parts.port, turn)
        except TimeoutError:
            raise UnreachedError(f"{self.url}: no connection within {connect_s:.3g} s") from None
        except (OSError, UnicodeError) as error:
            raise UnreachedError(f"{self.url}: {words_of(error)}") from error
        self._reader, self._writer = opened
        tune(self._writer.get_extra_info("socket"))

    async def subscribe(self, query: str) -> None:
        """Subscribe to a query or a selection, in place of the last one. `hear` then returns the answer."""
        await self._say(pack(query))

    async def publish(self, id: str, metadata: Mapping[str, Any], value: Any) -> None:
        """Publish a value of the producer `id`, with the changes of its metadata: None deletes a key."""
        await self._say(pack([id, metadata, value]))

    async def _say(self, data: bytes) -> None:
        if self._reader.at_eof():
            raise self._ended()
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise self._error(words_of(error)) from error

    async def hear(self) -> Update:
        """Wait for the next update of the broker; cancelling loses nothing. Raises also `RefusedQuery`."""
        while not self._answers:
            if self._cutter.fault:
                raise self._error(f"this is no syndication broker: {self._cutter.fault}")
            self._answers.extend(self._cutter.cut(await self._read()))
        answer = self._answers.popleft()
        if isinstance(answer, Refusal):
            raise RefusedQuery(answer.text)
        return answer

    async def _read(self) -> bytes:
        data = await self._reader.read(_READ_BYTES)
        if not data:
            raise self._ended()
        self._spoke = True
        return data

    def _ended(self) -> LinkError:
        lost = self._reader.exception()
        if isinstance(lost, OSError):
            return self._error(words_of(lost))
        hint = "" if self._spoke else f" without a word: {_DOUBT}"
        return self._error(f"the broker closed the connection{hint}")

    def _error(self, text: str) -> LinkError:
        return LinkError(f"{self.url}: {text}")

    def __aiter__(self) -> AsyncIterator[Update]:
        return self

    async def __anext__(self) -> Update:
        return await self.hear()

    def close(self) -> None:
        """Disconnect. Idempotent."""
        self._writer.close()
        self._reader.let_go()


async def follow(
    url: str, query: str, answer_s: float = 10.0, on_lost: Callable[[LinkError], None] = lambda _: None
) -> AsyncGenerator[Update, None]:
    """Subscribe, and yield the updates of the broker: first the set, maybe empty. Use it in `aclosing`.

    If the broker is gone, `on_lost(error)` is called once, and the broker is dialled again for ever. If the
    set has changed meanwhile, a difference says how. Raises `LinkError` if the first answer does not come
    within about `answer_s` seconds, and `RefusedQuery`.
    """
    held, first = HeldSet(), True
    caller, whole = await _first_answer(url, query, answer_s)
    while True:
        with closing(caller):
            change = held.replaced(whole)
            if first or change.new or change.gone:
                yield change
            first = False
            try:
                async for update in caller:
                    held.note(update)
                    yield update
            except LinkError as error:
                on_lost(error)
        caller, whole = await _next_answer(url, query, answer_s)


async def _first_answer(url: str, query: str, answer_s: float) -> tuple[Caller, Difference]:
    """Subscribe to a broker that may still be starting."""
    attempts, clock = _attempts(), asyncio.get_running_loop().time
    end_s = clock() + answer_s
    while True:
        try:
            return await _answer(url, query, max(end_s - clock(), _LEAST_S), attempts.turn)
        except UnreachedError:
            pause_s = attempts.after(lasted=False)
            if clock() + pause_s > end_s:
                raise
        await asyncio.sleep(pause_s)


async def _next_answer(url: str, query: str, answer_s: float) -> tuple[Caller, Difference]:
    """Subscribe again, as soon as the broker answers."""
    attempts = _attempts()
    pause_s = attempts.next_s()
    while True:
        await asyncio.sleep(pause_s)
        with suppress(LinkError):
            return await _answer(url, query, answer_s, attempts.turn)
        pause_s = attempts.after(lasted=False)


def _attempts() -> Attempts:
    return Attempts(_RETRY_MIN_S, _RETRY_MAX_S, random.uniform)


async def _answer(url: str, query: str, answer_s: float, turn: int) -> tuple[Caller, Difference]:
    """Connect and subscribe. Return the connection, and the set of the query."""
    with ExitStack() as stack:
        caller = Caller(url)
        await caller.open(answer_s, turn)
        stack.callback(caller.close)
        await caller.subscribe(query)
        try:
            async with asyncio.timeout(answer_s):
                update = await caller.hear()
        except TimeoutError:
            raise LinkError(f"{url}: no answer within {answer_s:.3g} s: {_DOUBT}") from None
        if not isinstance(update, Difference):
            raise LinkError(f"{url}: a publication came before the set of the query")
        stack.pop_all()
        return caller, update
