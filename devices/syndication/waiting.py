"""Messages that wait for clients. Messages in a row for the same clients are packed once. Pure."""

from itertools import chain

from devices.syndication.client import Client, ClientMessage, Messages


class Waiting:
    """The messages that wait for each client, in their order."""

    def __init__(self) -> None:
        self._runs: dict[Client, list[Messages]] = {}
        self._to: tuple[Client, ...] = ()  # the clients of the last run; none if it is closed
        self._last = Messages()

    def __bool__(self) -> bool:
        return bool(self._runs)

    def post(self, to: tuple[Client, ...], message: ClientMessage) -> None:
        """Queue a message for some clients."""
        if to and to == self._to:
            self._last.append(message)
            return
        run = Messages((message,))
        for client in to:
            self._runs.setdefault(client, []).append(run)
        self._to, self._last = to, run

    def first(self) -> Client:
        """Return the client whose messages wait longest. There must be one."""
        return next(iter(self._runs))

    def pop(self, client: Client) -> Messages:
        """Remove and return the messages for a client, which may be none."""
        self._to = ()
        runs = self._runs.pop(client, [])
        return runs[0] if len(runs) == 1 else Messages(chain.from_iterable(runs))
