"""A program on a TMQ client of 2015: it sends the numbers that it reads, and says what it hears.

`python -m tests.rigs.tmq.program BROKER_PORT PUBLISHED SUBSCRIBED...` reads a number a line, to be sent. It
writes, with times of the monotonic clock in seconds: `knows COUNT` of subscribers, at each change;
`heard TOKEN NUMBER ATTEMPT TIME`; `failed NUMBER ATTEMPT TIME`; `died`, the client's thread.

With `TMQ_REFERENCE` in the environment, the directory of a clone of the reference, it runs the reference
itself; otherwise the client of the tests, which fails where the reference fails. A send that fails is tried
again until it succeeds, as an attempt of a higher number: a program cannot know whom the failed one reached.
"""

import contextlib
import os
import sys
import threading
import time
from struct import Struct
from typing import Any, Protocol

from bus.wire.pattern import Pattern

BODY = Struct(">IdH")
"""Number, time in seconds, attempt."""
MOTOR = Pattern("motor")[0]
PAUSE_S = 0.005  # between two rounds, as in the reference's own loop
ENVIRONMENT = "TMQ_REFERENCE"
_FILLER = b"." * 26
_ATTEMPTS = 0xFFFF  # minutes: a gateway on a busy machine is dead for longer than 255 of them take


class Face(Protocol):
    """A client has what the program needs."""

    def publish(self, tokens: tuple[int, ...]) -> None: ...

    def subscribe(self, tokens: tuple[int, ...]) -> None: ...

    def send(self, tokens: tuple[int, ...], data: bytes) -> None:
        """Raises `OSError` if one of the subscribers takes no connection."""

    def receive(self, tokens: tuple[int, ...]) -> bytes | None: ...

    @property
    def alive(self) -> bool: ...

    def subscribers(self, tokens: tuple[int, ...]) -> int: ...


class Original:
    """The reference itself, in a thread of its own, which never ends.

    Its files are unmodified; its module `context` lacks the three names that it uses, and is given them here.
    """

    def __init__(self, place: str, broker: tuple[str, int]) -> None:
        sys.path.insert(0, place)
        from tmq import context, tsocket  # type: ignore[import-not-found]

        vars(context).update(Thread=threading.Thread, time=time.time, sleep=time.sleep)
        before = set(threading.enumerate())
        self._tmq: Any = tsocket
        self._context = context.Context(None)
        (self._thread,) = set(threading.enumerate()) - before
        self._socket = tsocket.tmq_socket(self._context)
        tsocket.tmq_bind(self._socket, ("127.0.0.1", 0))
        tsocket.tmq_broker(self._socket, broker)

    def publish(self, tokens: tuple[int, ...]) -> None:
        self._tmq.tmq_publish(self._socket, tokens)

    def subscribe(self, tokens: tuple[int, ...]) -> None:
        self._tmq.tmq_subscribe(self._socket, tokens)

    def send(self, tokens: tuple[int, ...], data: bytes) -> None:
        self._tmq.tmq_send(self._socket, tokens, data)

    def receive(self, tokens: tuple[int, ...]) -> bytes | None:
        found: bytes | None = self._tmq.tmq_recv(self._socket, tokens)
        return found

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def subscribers(self, tokens: tuple[int, ...]) -> int:
        return len(self._socket.subscribed[tokens])


class Double:
    """The client of the tests, which behaves as the reference does, with a thread as the reference has."""

    def __init__(self, broker: tuple[str, int]) -> None:
        from tests.helpers.tmq import ReferenceClient

        self._client = ReferenceClient(broker)
        self._taken: dict[tuple[int, ...], int] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            self._client.process()
            time.sleep(PAUSE_S)

    def publish(self, tokens: tuple[int, ...]) -> None:
        self._client.publish(*tokens)

    def subscribe(self, tokens: tuple[int, ...]) -> None:
        self._client.subscribe(*tokens)

    def send(self, tokens: tuple[int, ...], data: bytes) -> None:
        self._client.send(tokens, data)

    def receive(self, tokens: tuple[int, ...]) -> bytes | None:
        taken, received = self._taken.get(tokens, 0), self._client.received[tokens]
        if taken == len(received):
            return None
        self._taken[tokens] = taken + 1
        return received[taken]

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def subscribers(self, tokens: tuple[int, ...]) -> int:
        return len(self._client.subscribers[tokens])


def face(broker: tuple[str, int]) -> Face:
    """Make the client that the environment asks for."""
    place = os.environ.get(ENVIRONMENT)
    return Original(place, broker) if place else Double(broker)


def say(*words: object) -> None:
    """Write a line at once, as a whole: two threads do."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def listen(client: Face, tokens: list[int], published: int) -> None:
    """Say what comes in, until the client's thread dies."""
    known = 0
    while client.alive:
        if (count := client.subscribers((MOTOR, published))) != known:
            say("knows", known := count)
        for token in tokens:
            while (data := client.receive((MOTOR, token))) is not None:
                if len(data) >= BODY.size:  # a broker asks with an empty message whether we live
                    number, _, attempt = BODY.unpack_from(data)
                    say("heard", token, number, attempt, time.monotonic())
        time.sleep(PAUSE_S / 5)
    say("died")


def send(client: Face, token: int, number: int) -> None:
    """Send a number; again if that fails, until it succeeds. Then wait: faster than a reference looks for
    connections, its backlog is full, and connecting to it takes a second."""
    failed = True
    for attempt in range(_ATTEMPTS):
        body = BODY.pack(number, time.monotonic(), attempt) + _FILLER
        try:
            client.send((MOTOR, token), body)
            failed = False
        except OSError:
            say("failed", number, attempt, time.monotonic())
        time.sleep(PAUSE_S)
        if not failed:
            return


def main() -> None:
    port, published, *subscribed = map(int, sys.argv[1:])
    client = face(("127.0.0.1", port))
    for token in subscribed:
        client.subscribe((MOTOR, token))
    client.publish((MOTOR, published))
    threading.Thread(target=listen, args=(client, subscribed, published), daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            send(client, published, int(line))
    os._exit(0)  # the reference's thread never ends


if __name__ == "__main__":
    main()
