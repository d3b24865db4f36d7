"""Two gateways that stand in for each other on a device that is asked by text: one asks at a time."""

import asyncio
from itertools import pairwise

from bus.wire.frame import unpack
from bus.wire.pattern import Pattern
from tests.appliance.asked_devices import LineDevice, TcpDevice, of_side
from tests.appliance.pairs import PLANT, Pair, forwarding
from tests.bridges.protocols.modbus.bench import Said
from tests.bridges.protocols.modbus.ptys import PtyLine
from tests.bridges.protocols.queries.bench import TextDevice
from tests.bridges.protocols.spoken_support import message
from tests.helpers.peers import until
from tests.helpers.ports import free_port

TIMEOUT_S = 0.15
VALUE, RESULT = Pattern("p", "volt"), Pattern("p", "volt", "result")
TEXT = f"""{PLANT}\
  joint:
    on: [gw-a, gw-b]
    join:
      - bus: left
      - MEDIUM
        protocol:
          queries:
            poll_ms: 20
            timeout_ms: 150
            silence_ms: 20
            begin: "*CLS"
            queries:
              - {{{{ask: "A?", pattern: p/a}}}}
              - ask: "VOLT?"
                pattern: p/volt
                set: "VOLT {{{{data}}}}"
                ack: OK
                write: true
                min: 0
                max: 30
"""


class Supply(TextDevice):
    """A power supply that confirms what it is told, unless it is `deaf`."""

    deaf = False

    def say(self, asked: str, answer: str | None) -> Said:
        if asked.startswith("VOLT ") and not self.deaf:
            answer = "OK"
        return super().say(asked, answer)


def of(pair: Pair, pattern: Pattern) -> list[bytes]:
    return [bytes(unpack(one).data) for one in pair.ears[0].heard if unpack(one).tokens == pattern]


async def more(pair: Pair) -> None:
    """Wait for more readings on the bus."""
    before = len(of(pair, VALUE))
    await until(lambda: len(of(pair, VALUE)) > before + 4)


async def test_on_a_serial_line_a_takeover_leaves_one_that_asks_and_it_begins_anew() -> None:
    line, supply = PtyLine(3), Supply()
    device = LineDevice(line, supply)  # type: ignore[arg-type]
    medium = f"uart: {{{{port: {{{{gw-a: {line.path(0)}, gw-b: {line.path(1)}}}}}, baud: 115200}}}}"
    async with forwarding(TEXT.replace("MEDIUM", medium)) as pair:
        first, second = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        await until(lambda: pair.candidacy(second).candidate.ready)
        await more(pair)
        assert {end for end, _ in line.said} == {int(first == "gw-b"), 2}
        assert of_side(pair, second).state == "up"
        pair.ears[0].say(message("p/volt/set", b"7"))
        await until(lambda: of(pair, RESULT) == [b"done"])
        supply.deaf = True
        pair.ears[0].say(message("p/volt/set", b"8"))
        await until(lambda: "VOLT 8" in supply.asked)
        pair.gateways[first].close()
        await until(lambda: pair.forwards(second))
        await more(pair)
        assert of(pair, RESULT)[1:] in ([b"not known: it came before a takeover"], [b"not known: no answer"])
        assert of(pair, VALUE)[-1] == b"8"
    asked = [(at_s, end) for at_s, end in line.times if end < 2]
    changes = [(one, other) for one, other in pairwise(asked) if one[1] != other[1]]
    assert len(changes) == 1
    assert changes[0][1][0] - changes[0][0][0] >= TIMEOUT_S
    assert (supply.asked.count("VOLT 8"), supply.asked.count("*CLS")) == (1, 2)
    device.close()
    line.close()


async def test_on_tcp_a_standby_has_no_connection_and_without_a_broker_nothing_is_asked() -> None:
    port, supply, loop = free_port(), Supply(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: TcpDevice(supply), "127.0.0.1", port)  # type: ignore[arg-type]
    medium = f"tcp: {{{{host: 127.0.0.1, port: {port}}}}}"
    async with forwarding(TEXT.replace("MEDIUM", medium)) as pair:
        first, second = ("gw-a", "gw-b") if pair.forwards("gw-a") else ("gw-b", "gw-a")
        await until(lambda: pair.candidacy(second).candidate.ready)
        await more(pair)
        assert of_side(pair, second).state == of_side(pair, first).state == "up"
        assert len(TcpDevice.live) == 1
        pair.gateways[first].close()
        await until(lambda: pair.forwards(second))
        await more(pair)
        assert set(of(pair, VALUE)) == {b"12.5"}
        pair.hub.parts["broker main"].close()
        await until(lambda: pair.candidacy(second).candidate.state == "orphan")
        count, since_s = len(supply.asked), loop.time()
        await until(lambda: loop.time() > since_s + 5 * 0.02)  # five times `poll_ms`
        assert len(supply.asked) <= count + 1
    server.close()
