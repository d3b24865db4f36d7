"""The TCP server of a syndication broker, and the exchange that serves its clients and all others."""

import logging
import socket
import time
from asyncio import AbstractEventLoop
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from bus.errors import LinkError
from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.serving.limits import Limits
from bus.serving.listener import Address, Listener
from bus.serving.rejections import Rejections
from bus.transports.binding import Binding
from devices.syndication.bounds import Bounds
from devices.syndication.exchange import Exchange
from devices.syndication.state.producers import NOWHERE, Keeper
from devices.syndication.tcp import TcpClient
from devices.syndication.turns import Turns
from devices.syndication.wire.cutter import Cutter
from devices.syndication.wire.messages import Message, refusal

LEAVING = 64  # clients whose connection is gone while messages of theirs wait
log = logging.getLogger("buscoupler.syndication")


class Server:
    """Listens for clients of both generations. Clients other than those of TCP use its `exchange`.

    `keeper` stores the metadata of producers. `stats` is the ledger of all messages of TCP clients; its
    `rejected` counts refusals by reason.
    """

    def __init__(self, name: str, bounds: Bounds, limits: Limits, keeper: Keeper = NOWHERE) -> None:
        self.stats = Stats()
        self.reject = Rejections(name, self.stats.rejected, log)
        self.exchange = Exchange(bounds, self.reject, time.monotonic, keeper)
        self._turns = Turns(self.exchange.deliver)
        self._bound: dict[Address, Address] = {}
        self._clients: dict[Connection, TcpClient] = {}
        self._leaving: dict[TcpClient, None] = {}
        self._listener = Listener(
            limits,
            lambda: Cutter(bounds),
            self._on_messages,
            self._on_gone,
            self.reject,
            self.stats,
            half="half a message",
            answer=refusal,
        )

    @property
    def counts(self) -> Mapping[str, int]:
        """Plain numbers for a status page."""
        return {
            **self.exchange.book.counts,
            "connections": len(self._listener.connections),
            "accepted": self._listener.accepted,
            "refused": self._listener.refused,
        }

    @property
    def waiting(self) -> int:
        """The number of clients that wait for their next turn."""
        return len(self._turns)

    @property
    def addresses(self) -> list[Address]:
        """The addresses on which the server listens, with the bound ports, or waits to listen."""
        return [self._bound.get(address, address) for address in self._listener.bindings]

    @property
    def bindings(self) -> list[Binding[Address]]:
        """The same addresses, as a status shows them."""
        return list(self._listener.bindings.values())

    def open(self, loop: AbstractEventLoop, addresses: Sequence[Address]) -> None:
        """Listen at all addresses. Raises `LinkError`, with none open. Connections wait until `accept`."""
        self._turns.open(loop)
        self._listener.hold()
        try:
            self.listen(loop, addresses)
        except LinkError:
            self.close()
            raise

    def listen(self, loop: AbstractEventLoop, addresses: Sequence[Address]) -> None:
        """Listen at new addresses, and wait for those that are not there yet. Raises `LinkError`."""
        for address in addresses:
            if address not in self._listener.bindings:
                keep = partial(self._bound.__setitem__, address)
                self._listener.await_address(loop, address, keep, family=socket.AF_INET)

    def leave(self, addresses: Collection[Address]) -> None:
        """Stop listening at all addresses but these. Connected clients stay."""
        for address in [address for address in self._listener.bindings if address not in addresses]:
            self._listener.shut(address)
            self._bound.pop(address, None)

    def accept(self) -> None:
        """Serve the connections that wait, and all later ones."""
        self._listener.release()

    def close(self) -> None:
        """Stop listening and disconnect all clients. Idempotent."""
        self._turns.close()
        self.exchange.close()
        for client in list(self._leaving):
            client.leave()
        self._listener.close()
        self._bound.clear()

    def _on_messages(self, connection: Connection, messages: list[Message]) -> None:
        self.stats.received += len(messages)
        client = self._clients.get(connection)
        if client is None:
            client = self._clients[connection] = TcpClient(
                connection, self.exchange, self.reject, self._on_left
            )
        client.hear(messages)
        self._turns.give(client)

    def _on_gone(self, connection: Connection) -> None:
        client = self._clients.pop(connection, None)
        if client is None:
            return
        if client.is_busy and self._turns.is_open and len(self._leaving) < LEAVING:
            self._leaving[client] = None
            client.go()
        else:
            self._turns.drop(client)
            client.leave()

    def _on_left(self, client: TcpClient) -> None:
        self._leaving.pop(client, None)
