"""A gateway between two CAN buses that speaks `raw` on both. Its arguments: CHANNEL CHANNEL.

It stands by until it gets SIGUSR1, as one that is granted the lease.
"""

import asyncio
import signal
import sys

from bridges.bridge import Bridge
from bridges.media.can.medium import Can
from bridges.policy import Policy
from bridges.protocols.raw.protocol import Raw
from tests.helpers.peers import until
from tests.kernel.guest.support import PATIENCE_S

AGE_MS = 30_000  # of an emulated machine
LOW, HIGH = "0x100-0x1ff", "0x500-0x5ff"


async def main(*channels: str) -> None:
    loop = asyncio.get_running_loop()
    held = [False]
    bridge = Bridge("x", 7, clock=loop.time)
    ways = zip(channels, ((LOW, HIGH), (HIGH, LOW)), strict=True)
    links, sides = [], []
    for channel, (receive, send) in ways:
        record = Raw(root=("car",), receive=(receive,), send=(send,), age_ms=AGE_MS)
        way, age_s = record.way, AGE_MS / 1000
        policy = Policy(allow_in=way.inward or (), allow_out=way.outward or (), replay_s=age_s)
        medium = Can(channel=channel, queue_bytes=1 << 20, age_ms=AGE_MS)
        sides.append(bridge.side(channel, policy))
        links.append(medium.speaking(record, may_act=lambda _: held[0], retry_min_s=0.01))
    gate = bridge.stand_by(lambda _: held[0], age_s=AGE_MS / 1000)
    for link, side in zip(links, sides, strict=True):
        link.open(side, loop)

    def promote() -> None:
        held[0] = True
        gate.resume()

    loop.add_signal_handler(signal.SIGUSR1, promote)
    await until(lambda: all(link.state == "up" for link in links), PATIENCE_S)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
