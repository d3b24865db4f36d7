"""A gateway that is killed under traffic, with a broker that is there, and with one that dies, too."""

import asyncio
import sys
from pathlib import Path

import pytest
from buscoupler_mqtt.medium import Mqtt, Spool
from mosquitto import Mosquitto, needs_mosquitto

from bus.wire.frame import unpack
from tests.conformance.pair import Side
from tests.helpers.peers import until

SPEAKER = Path(__file__).parent / "speaker.py"


async def accepted_until_killed(url: str, spool: Path, first: int, count: int) -> int:
    """Run a speaker until it has accepted so many numbers, kill it, and return the next number."""
    arguments = str(SPEAKER), url, str(spool), str(first)
    speaker = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    assert speaker.stdout is not None
    accepted = first
    while accepted < first + count and (line := await speaker.stdout.readline()):
        accepted = int(line)
    speaker.kill()
    accepted = int(([b"%d" % accepted, *(await speaker.stdout.read()).split(b"\n")[:-1]])[-1])
    await speaker.wait()
    assert accepted >= first + count
    return accepted


@needs_mosquitto
@pytest.mark.parametrize("away", [False, True])
async def test_what_a_killed_gateway_has_accepted_arrives(
    broker: Mosquitto, tmp_path: Path, away: bool
) -> None:
    far = Side("far", lambda: Mqtt(url=broker.url, subscribe=("#",)).link(retry_min_s=0.01, retry_max_s=0.02))
    far.open()
    await until(lambda: far.link.state == "up")
    spool, ranges, first = tmp_path / "spool", list[range](), 0
    for _ in range(3):
        if away:
            broker.kill()
        accepted = await accepted_until_killed(broker.url, spool, first, 300)
        ranges.append(range(first, accepted))
        first = accepted + 100_000  # what it has not accepted may have been written all the same
        if away:
            broker.start()
            await until(lambda: far.link.state == "up")
    after = Side("after", Mqtt(url=broker.url, spool=Spool(directory=str(spool))).link)
    after.open()
    wanted = {number for some in ranges for number in some}
    heard = far.heard.messages
    await until(lambda: wanted <= {int(unpack(message).data) for message in heard})
    numbers = list(dict.fromkeys(int(unpack(message).data) for message in heard))
    assert numbers == sorted(numbers)
    after.close()
    far.close()
