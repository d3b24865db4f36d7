"""The clients of a syndication broker that come by TCP, and the exchange that serves them and all others."""

import logging
import time
from asyncio import AbstractEventLoop
from collections.abc import Mapping, Sequence

from bus.errors import LinkError
from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.serving.limits import Limits
from bus.serving.listener import Address, Listener
from bus.serving.rejections import Rejections
from devices.syndication.bounds import Bounds
from devices.syndication.cutter import Cutter
from devices.syndication.exchange import Exchange
from devices.syndication.tcp import TcpClient
from devices.syndication.wire import BrokerRequest, Message, Publication, Subscription

log = logging.getLogger("buscoupler.syndication")


class Server:
    """Listens for clients of both generations. Other clients say what they have to `exchange`.

    `stats` is the ledger of what clients said and were told; its `rejected` counts what was refused.
    """

    def __init__(self, name: str, bounds: Bounds, limits: Limits) -> None:
        self.stats = Stats()
        self.reject = Rejections(name, self.stats.rejected, log)
        self.exchange = Exchange(bounds, self.reject, time.time)
        self._clients: dict[Connection, TcpClient] = {}
        self._listener = Listener(
            limits,
            lambda: Cutter(bounds),
            self._on_messages,
            self._on_gone,
            self.reject,
            self.stats,
            half="half a message",
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

    def open(self, loop: AbstractEventLoop, addresses: Sequence[Address]) -> list[Address]:
        """Listen; return the addresses with the ports that were bound. Raises `LinkError`, with none open."""
        try:
            return [self._listener.open(loop, address) for address in addresses]
        except LinkError:
            self._listener.close()
            raise

    def close(self) -> None:
        """Stop listening and disconnect all clients. Idempotent."""
        self._listener.close()

    def _on_messages(self, connection: Connection, messages: list[Message]) -> None:
        self.stats.received += len(messages)
        client = self._clients.get(connection)
        if client is None:
            client = self._clients[connection] = TcpClient(connection, self.reject)
        for message in messages:
            if self._take(client, message) and not connection.greeted:
                connection.met()
        self.exchange.deliver()

    def _take(self, client: TcpClient, message: Message) -> bool:
        """Take a message. Return whether it was accepted."""
        if isinstance(message, Publication):
            return self.exchange.publish(client, message)
        if isinstance(message, BrokerRequest):
            client.assign()
            return False
        client.form = message.form
        if isinstance(message, Subscription):
            return self.exchange.subscribe(client, message.query)
        if message.answer:
            self.exchange.refuse(client, message.reason, message.answer)
        else:
            self.reject(message.reason, client.host)
        return False

    def _on_gone(self, connection: Connection) -> None:
        client = self._clients.pop(connection, None)
        if client is not None:
            self.exchange.leave(client)
