"""Copies for the other gateways of a bridge, which leave after the copies for all other subscribers."""

from collections import deque
from collections.abc import Callable, Container

from bridges.media.tmq.outlet import Tickets, TmqOutlet

LATE_S = 0.1  # a subscriber that stalls for longer may lose what waits for it if this gateway dies


class MateCopies:
    """The copies for other gateways that wait here while other subscribers have not got theirs.

    A standby takes a message that it hears for sent.
    """

    def __init__(self, tickets: Tickets) -> None:
        self._tickets = tickets
        self._waiting: deque[tuple[float, TmqOutlet, list[bytes]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, outlet: TmqOutlet, messages: list[bytes], now_s: float) -> None:
        """Keep messages for a mate. The caller has called `Tickets.wait` for those that nobody has got."""
        self._tickets.queue(messages)
        self._waiting.append((now_s, outlet, messages))

    def release(self, before_s: float, now_s: float) -> float | None:
        """Pass on messages that came before `before_s`, and those that have waited for `LATE_S`.

        Return when the next one has waited so long, None if none waits.
        """
        while self._waiting and (self._waiting[0][0] < before_s or self._waiting[0][0] <= now_s - LATE_S):
            _, outlet, messages = self._waiting.popleft()
            passed = outlet.offer(messages)
            for one in messages[:passed]:
                self._tickets.leave(one)
                self._tickets.got(one)
            outlet.take_over(messages[passed:], now_s)
            outlet.pump(now_s)
        return self._waiting[0][0] + LATE_S if self._waiting else None

    def waiting(self) -> list[bytes]:
        """Return each waiting message once, in order."""
        return list({id(one): one for _, _, messages in self._waiting for one in messages}.values())

    def take_back(self, messages: Container[int], reason: str) -> None:
        """Drop messages, given by the identity of their bytes."""
        self._drop(lambda outlet, message: id(message) in messages, reason)

    def forget(self, gone: TmqOutlet) -> None:
        """Drop the copies for a subscriber that is not a mate any more."""
        self._drop(lambda outlet, message: outlet is gone, "closed")

    def clear(self, reason: str) -> None:
        """Drop all copies."""
        self._drop(lambda outlet, message: True, reason)

    def _drop(self, chosen: Callable[[TmqOutlet, bytes], bool], reason: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for put_s, outlet, messages in waiting:
            kept = [one for one in messages if not chosen(outlet, one)]
            for one in messages:
                if chosen(outlet, one):
                    self._tickets.lose(one, reason)
            if kept:
                self._waiting.append((put_s, outlet, kept))
