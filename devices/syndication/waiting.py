"""Holds what clients are still to be told. Messages in a row for the same clients are packed once. Pure."""

from itertools import chain

from devices.syndication.client import Client, Messages, Told


class Waiting:
    """The messages that wait for each client, in their order."""

    def __init__(self) -> None:
        self._runs: dict[Client, list[Messages]] = {}
        self._to: tuple[Client, ...] = ()  # whom the last run is for; none, if nothing may be added to it
        self._last = Messages()

    def __bool__(self) -> bool:
        return bool(self._runs)

    def post(self, to: tuple[Client, ...], message: Told) -> None:
        """Keep a message for some clients, behind what waits for them."""
        if to and to == self._to:
            self._last.append(message)
            return
        run = Messages((message,))
        for client in to:
            self._runs.setdefault(client, []).append(run)
        self._to, self._last = to, run

    def first(self) -> Client:
        """Return a client for which something waits, longest of all."""
        return next(iter(self._runs))

    def pop(self, client: Client) -> Messages:
        """Take what waits for a client, maybe nothing."""
        self._to = ()
        runs = self._runs.pop(client, [])
        return runs[0] if len(runs) == 1 else Messages(chain.from_iterable(runs))
