"""A client of a syndication broker on a TCP connection, of either generation."""

from collections.abc import Sequence

from bus.serving.connection import Connection
from bus.serving.rejections import Rejections
from devices.syndication.client import Told
from devices.syndication.wire import Difference, Form, assignment, error

SLOW = "too slow for a difference"


class TcpClient:
    """A connection as a `Client`. `form`: how it is told messages, which its last query says."""

    __slots__ = ("_connection", "_reject", "form", "host")

    def __init__(self, connection: Connection, reject: Rejections) -> None:
        self.host = connection.host
        self.form = Form.UNTAGGED
        self._connection, self._reject = connection, reject

    def take(self, messages: Sequence[Told]) -> None:
        """Send all as one, if there is room; else one by one, so that the newest publications are dropped."""
        form = self.form
        packed = [message.packed(form) for message in messages]
        data = b"".join(packed)
        if self._connection.has_room(len(data)):
            self._connection.send(data, len(packed))
            return
        for message, one in zip(messages, packed, strict=True):
            if isinstance(message, Difference) and not self._connection.has_room(len(one)):
                self._end()
            self._connection.send(one)

    def _end(self) -> None:
        """Disconnect a subscriber whose set would be wrong from now on."""
        if not self._connection.closed:
            self._reject(SLOW, self.host)
            self._connection.close(SLOW)

    def refuse(self, why: str) -> None:
        """Answer a wrong query; a tagged client takes every answer to one for fatal, and is disconnected."""
        if self.form is Form.UNTAGGED:
            self._connection.send(error(why))
        else:
            self._connection.close("wrong query")

    def assign(self) -> None:
        """Name it a broker: the one that it has reached."""
        self._connection.say(assignment(self._connection.own_address))
