"""A process that a test kills: it publishes numbers through a spool, and prints those that it has accepted.

Arguments: the URL of the broker, the directory of the spool, the first number.
"""

import asyncio
import sys

from buscoupler_mqtt.medium import Mqtt, Spool

from bus.hub import Hub
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern


async def main(url: str, directory: str, first: int) -> None:
    hub = Hub("speaker")
    link = Mqtt(url=url, spool=Spool(directory=directory)).link(retry_min_s=0.01, retry_max_s=0.1)
    link.open(hub, asyncio.get_running_loop())
    said = accepted = first
    while True:
        stats = hub.pipes[0].stats
        if stats.queued < 1000:
            numbers = range(said, said + 10)
            hub.publish(from_payloads(pack(PUB, Pattern("n"), b"%d" % number) for number in numbers))
            said += 10
        assert not stats.dropped
        if first + stats.sent > accepted:
            accepted = first + stats.sent
            print(accepted, flush=True)
        await asyncio.sleep(0.001)


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
