"""A client of a syndication broker on a TCP connection, of either generation."""

import time
from collections import deque
from collections.abc import Callable, Iterable

from bus.serving.connection import Connection
from bus.serving.rejections import Rejections
from bus.steps import Steps
from devices.syndication.client import Messages
from devices.syndication.exchange import Exchange
from devices.syndication.wire.messages import (
    REFUSED,
    BrokerRequest,
    Difference,
    Form,
    Message,
    Publication,
    Refused,
    Subscription,
    assignment,
    error,
)

SLOW = "too slow for a difference"
GONE = "gone before its turn"


class TcpClient:
    """A connection as a `Client`. Its messages wait for its turn; nothing more is read meanwhile.

    `form` is the form of messages to the client, chosen by its last query. `on_left(client)` is called when
    the client has left.
    """

    def __init__(
        self,
        connection: Connection,
        exchange: Exchange,
        reject: Rejections,
        on_left: Callable[["TcpClient"], None],
    ) -> None:
        self.host = connection.host
        self.form = Form.UNTAGGED
        self._connection, self._exchange = connection, exchange
        self._reject, self._on_left = reject, on_left
        self._inbox: deque[Message] = deque()
        self._steps: Steps[bool] | None = None
        self._gone = False
        self._denied = set[str]()

    @property
    def is_busy(self) -> bool:
        """Return whether a message of the client is not done yet."""
        return self._steps is not None or bool(self._inbox)

    def hear(self, messages: Iterable[Message]) -> None:
        """Queue the messages of one read for `work`."""
        self._inbox += messages

    def work(self, until_s: float) -> bool:
        """Handle queued messages until `until_s`. Return whether all are done: only then more is read."""
        inbox = self._inbox
        while self.is_busy:
            if self._steps is None:
                self._begin(inbox.popleft())
            else:
                self._go_on(self._steps)
            if time.monotonic() >= until_s:
                break
        if self.is_busy:
            self._connection.pause()
            return False
        self._connection.resume()
        if self._gone:
            self.leave()
        return True

    def _begin(self, message: Message) -> None:
        if isinstance(message, Publication):
            self._met(self._exchange.publish(self, message))
        elif isinstance(message, BrokerRequest):
            self._assign()
        else:
            self.form = message.form
            self._ask(message)

    def _ask(self, message: Subscription | Refused) -> None:
        if isinstance(message, Subscription):
            if not self._gone:
                self._steps = self._exchange.subscribing(self, message.query)
        elif message.answer:
            self._exchange.refuse(self, message.reason, message.answer)
        else:
            self._reject(message.reason, self.host)
            self.deny(f"{message.reason}: {REFUSED[message.reason]}", message.form)

    def _go_on(self, steps: Steps[bool]) -> None:
        self._steps = None  # these steps may end the connection, and then end by themselves
        try:
            next(steps)
        except StopIteration as end:
            self._met(end.value)
        else:
            self._steps = steps

    def _met(self, accepted: bool) -> None:
        if accepted and not self._connection.greeted:
            self._connection.met()

    def take(self, messages: Messages) -> None:
        """Send all messages as one, if the queue has room; else one by one, which drops the newest.

        A tagged client gets at most a TCP segment at once: the client in Python fails at half a message.
        """
        data = messages.packed(self.form)
        if self._connection.has_room(len(data)):
            pieces = messages.pieces() if self.form is Form.TAGGED else ((data, len(messages)),)
            for piece, count in pieces:
                self._connection.send(piece, count)
            return
        for message in messages:
            one = message.packed(self.form)
            if isinstance(message, Difference) and not self._connection.has_room(len(one)):
                self._end()
            self._connection.send(one)

    def _end(self) -> None:
        """Disconnect a subscriber that missed a difference: its set would be wrong from now on."""
        if not self._connection.closed:
            self._reject(SLOW, self.host)
            self._connection.close(SLOW)

    def refuse(self, why: str) -> None:
        """Answer a wrong query. A tagged client has no such answer, and is disconnected."""
        if self.form is Form.UNTAGGED:
            self._connection.send(error(why))
        else:
            self._connection.close_later("wrong query")

    def deny(self, why: str, form: Form) -> None:
        """Answer a refused publication, once for each reason. A tagged client has no such answer."""
        if form is Form.UNTAGGED and why not in self._denied:
            self._denied.add(why)
            self._connection.send(error(why))

    def _assign(self) -> None:
        """Answer the client's request for a broker with the address of this one."""
        self._connection.say(assignment(self._connection.own_address))

    def go(self) -> None:
        """Note that the connection is gone. Queued messages are still handled in turns; then it leaves."""
        self._gone = True
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.close()

    def leave(self) -> None:
        """Leave now. Queued messages are dropped and counted. Idempotent."""
        self.go()
        if self._inbox:
            self._reject(GONE, self.host, len(self._inbox))
            self._inbox.clear()
        self._exchange.leave(self)
        self._on_left(self)
