"""The connections made to a client, by which it tells what its mates publish from what others do."""

from collections.abc import Callable, Iterable

from bus.serving.connection import Connection


class Callers:
    """The connections made to a client, by the number in the greeting of each.

    `is_mate` judges a number; `mates` are the connections with such a number. `take` gets the patterns, as
    bytes, of what they publish. The first message of a connection comes before its greeting, so its pattern
    waits.
    """

    def __init__(self, is_mate: Callable[[int], bool], take: Callable[[list[bytes]], None]) -> None:
        self._is_mate, self._take = is_mate, take
        self.mates: set[Connection] = set()
        self._numbers: dict[Connection, int] = {}
        self._first: dict[Connection, list[bytes]] = {}

    def said(self, connection: Connection, messages: list[bytes]) -> None:
        """Note messages of an open connection of a mate, or of a connection that has not greeted yet."""
        if connection in self.mates:
            self._take(_patterns(messages))
        else:
            self._first.setdefault(connection, _patterns(messages[:1]))

    def greeted(self, connection: Connection, number: int) -> None:
        """Note the number in the greeting of a connection."""
        if connection.closed:
            return
        self._numbers[connection] = number
        first = self._first.pop(connection, [])
        if not self._is_mate(number):
            return self.mates.discard(connection)
        self.mates.add(connection)
        if first:
            self._take(first)
        return None

    def judge(self) -> None:
        """Judge all numbers again, after ours has changed."""
        self.mates = {connection for connection, number in self._numbers.items() if self._is_mate(number)}

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self.mates.discard(connection)
        self._numbers.pop(connection, None)
        self._first.pop(connection, None)


def _patterns(messages: Iterable[bytes]) -> list[bytes]:
    return [message[4 : 4 + 4 * message[1]] for message in messages]
