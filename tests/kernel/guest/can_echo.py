"""A program that echoes all messages on a CAN bus, through a link. Its arguments: CHANNEL NODE [fd]."""

import asyncio
import sys

from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from tests.helpers.peers import until
from tests.kernel.guest.support import PATIENCE_S, can_link


class Echo(Pipe):
    """A pipe that sends every message back."""

    def __init__(self, hub: Hub) -> None:
        self.name, self.stats, self._hub = "echo", Stats(), hub

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        self._hub.publish(from_payloads(payloads(batch)), self)

    def close(self) -> None:
        pass


async def main(channel: str, node: str, fd: bool) -> None:
    hub = Hub()
    hub.attach(Echo(hub))
    with can_link(hub, channel, int(node), fd=fd) as link:
        await until(lambda: link.state == "up", PATIENCE_S)
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], "fd" in sys.argv[3:]))
