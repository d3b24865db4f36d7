"""A message over a trunk is one trace of the spans of two gateways, and its end is said."""

import asyncio
import logging
from typing import Any

from bus.hub import Hub
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from tests.appliance.telemetry.collector import collecting
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{a: {{address: 127.0.0.1}}, b: {{address: 127.0.0.1}}}}
buses:
  p: {{on: a, listen: ["tcp://127.0.0.1:{0}"]}}
  m: {{on: a, listen: [{{url: "tcp://127.0.0.1:{1}", trunk: true}}]}}
  q: {{on: b, listen: ["tcp://127.0.0.1:{2}"]}}
bridges:
  one: {{on: a, join: [{{bus: p}}, {{bus: m}}]}}
  two: {{on: b, join: [{{bus: m}}, {{bus: q}}]}}
devices:
  x: {{on: a, telemetry: one, to: "{3}", one_in: {4}}}
  y: {{on: b, telemetry: two, to: "{3}", one_in: 1, logs: false}}
"""


def test_a_message_over_a_trunk_is_one_trace_and_its_end_is_said() -> None:
    async def run() -> None:
        ports = [free_port() for _ in range(3)]
        with collecting() as collector:
            topology = loads(TEXT.format(*ports, collector.url, 1))
            loop = asyncio.get_running_loop()
            one, two = appliance_of(topology, "a"), appliance_of(topology, "b")
            one.open(loop)
            two.open(loop)
            await until(
                lambda: all(
                    link.state == "up"
                    for link in one.links() + two.links()
                    if link.name != "x" and "telemetry" not in link.name
                )
            )
            logging.getLogger("buscoupler").warning("a line of the log")
            plain = one.parts["bus p"].plain  # type: ignore[union-attr]
            await until(lambda: _sends(plain) and len(_both(collector.spans())) > 0)
            await until(collector.lines)
            first, later = _both(collector.spans())[0]
            assert later["parentSpanId"] == first["spanId"] != later["spanId"]
            ends = {item["key"]: item["value"] for item in later["attributes"]}["buscoupler.trace_ends"]
            assert ends["stringValue"]
            assert any("the trace ends here" in event["name"] for event in later["events"])
            assert all(
                int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in (first, later)
            )
            assert "a line of the log" in [line["body"]["stringValue"] for line in collector.lines()]
            assert [c.detail for c in reloaded(one, loads(TEXT.format(*ports, collector.url, 64)))] == [
                "one_in"
            ]
            bridge = one.parts["bridge one"].hub
            one.close()
            two.close()
            assert not bridge.taps

    asyncio.run(run())


async def test_another_collector_takes_a_new_ledger_and_the_counts_of_the_old_one_stay() -> None:
    ports, dead = [free_port() for _ in range(3)], [f"http://127.0.0.1:{free_port()}" for _ in range(4)]
    one = appliance_of(loads(TEXT.format(*ports, dead[0], 1)), "a")
    one.open(asyncio.get_running_loop())
    try:
        part = one.parts["device x"]
        for number, url in enumerate(dead[1:], 1):
            logging.getLogger("buscoupler").warning("a line of the log")
            reloaded(one, loads(TEXT.format(*ports, url, 1)))
            assert len(part.hub._accounts._kept) == 2  # noqa: SLF001
            stats = part.hub.accounts()["x: telemetry"].stats
            assert stats.balance() == 0
            assert stats.dropped["closed"] >= number
    finally:
        one.close()


def _sends(hub: Hub) -> bool:
    hub.publish(from_payloads([pack(PUB, (1,), b"data")]))
    return True


def _both(spans: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the first and the later span of each trace that has both."""
    firsts = {span["traceId"]: span for span in spans if "parentSpanId" not in span}
    return [
        (firsts[one["traceId"]], one) for one in spans if "parentSpanId" in one and one["traceId"] in firsts
    ]
