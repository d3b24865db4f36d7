"""A member of a multicast group: it sends messages from standard input, and prints what it hears and counts.

`python -m tests.system.member '{"group": ..., "port": ..., "interface": ...}'`. A line of input holds the
messages of a batch in hex; an empty line asks for the counters. Lines of output are JSON.
"""

import asyncio
import json
import sys
from typing import Any

from bridges.media.multicast.link import MulticastLink
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from tests.helpers.links import multicast_link


def tell(**told: Any) -> None:
    print(json.dumps(told), flush=True)


class Teller(Pipe):
    """A pipe that prints every message it is sent."""

    name = "teller"

    def __init__(self) -> None:
        self.stats = Stats()

    def send(self, batch: Batch) -> None:
        tell(heard=[message.hex() for message in payloads(batch)])

    def close(self) -> None:
        pass


async def commands(hub: Hub, link: MulticastLink, teller: Teller) -> None:
    reader = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        messages = [bytes.fromhex(word) for word in line.decode().split()]
        if messages:
            hub.publish(from_payloads(messages), teller)
        else:
            names = ("sent", "sent_bytes", "queued", "dropped", "received", "rejected")
            tell(
                stats={name: getattr(link.stats, name) for name in names} | {"balance": link.stats.balance()}
            )


async def main() -> None:
    hub, teller = Hub(), Teller()
    hub.attach(teller)
    link = multicast_link(**json.loads(sys.argv[1]), retry_min_s=0.01, retry_max_s=0.05)
    link.open(hub, asyncio.get_running_loop())
    listening = asyncio.create_task(commands(hub, link, teller))
    told = ("", "")
    while not listening.done():
        if told != (link.state, link.fault):
            told = (link.state, link.fault)
            tell(state=link.state, fault=link.fault)
        await asyncio.sleep(0.002)
    link.close()


if __name__ == "__main__":
    asyncio.run(main())
