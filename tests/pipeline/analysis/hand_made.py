"""Captures written by hand, row by row: who saw which message where and when."""

import json
from collections import Counter
from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING, Any

from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from capture.pcapng import Packet
from capture.schema import DDL_PARTITIONED, Direction, Kind, Verdict
from pipeline.input.source import row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RX, TX = Direction.RX, Direction.TX
START_NS = 10**18
MS = 1_000_000
_PART = 4_000  # rows that a client sends at once


def frame(name: str, data: str) -> bytes:
    return pack(PUB, Pattern(*name.split("/")), data.encode())


class Capture:
    """The rows so far. Times are in ms since the start. Recorders are stopped at the end, but for those that
    are `killed`, or all of them if the capture `goes_on`."""

    def __init__(self, killed: Collection[str] = (), goes_on: bool = False) -> None:
        self.killed, self.goes_on = killed, goes_on
        self.packets: list[Packet] = []
        self.numbers, self.boots = Counter[str](), Counter[str]()
        self.summaries: list[dict[str, Any]] = []

    def seen(
        self,
        ms: float,
        gateway: str,
        hub: str,
        bus: str,
        way: Direction,
        content: bytes,
        number: int | None = None,
        verdict: Verdict = Verdict.OK,
        envelope: tuple[int, int] | None = None,
    ) -> None:
        """Note that a hub saw a message; in an `envelope` (origin and sequence), or in ours if it has a
        `number`."""
        if envelope is None and number is not None:
            envelope = 9, number
        message = content if envelope is None else wrap(content, Envelope(*envelope))
        at = START_NS + int(ms * MS)
        number_of_row, place = self._number(gateway, 1), (at, gateway, hub, bus, "peer")
        self.packets.append(
            Packet(*place, int(way), 0, verdict.value, self._boot(gateway), number_of_row, 1, message)
        )

    def missed(self, ms: float, gateway: str, rows: int) -> None:
        """Note that a recorder missed rows until then."""
        at = START_NS + int(ms * MS)
        number = self._number(gateway, rows + 1) + rows
        reason = b"not captured"
        kind, verdict = Kind.GAP.value, Verdict.NOT_CAPTURED.value
        self.packets.append(
            Packet(at, gateway, "", "", "", 0, kind, verdict, self._boot(gateway), number, rows, reason)
        )

    def dropped(
        self, ms: float, gateway: str, hub: str, bus: str, reason: str, count: int = 1, way: Direction = TX
    ) -> None:
        """Note in the ledger that a hub dropped messages on their way to a segment, or refused them there."""
        at, number = START_NS + int(ms * MS), self._number(gateway, 1)
        kind, verdict, place = Kind.LEDGER.value, Verdict.OTHER.value, (at, gateway, hub, bus, "link")
        self.packets.append(
            Packet(*place, int(way), kind, verdict, self._boot(gateway), number, count, reason.encode())
        )

    def event(self, ms: float, gateway: str, hub: str, words: str) -> None:
        """Note what a candidate of a bridge told."""
        at, number = START_NS + int(ms * MS), self._number(gateway, 1)
        kind, verdict = Kind.EVENT.value, Verdict.OTHER.value
        self.packets.append(
            Packet(at, gateway, hub, "", "", 0, kind, verdict, self._boot(gateway), number, 1, words.encode())
        )

    def topology(self, gateway: str, hubs: dict[str, Any], ms: float = 0.0, boot: int = 5) -> None:
        """Note what a run of a gateway's tap records, as at the end of a file that began then."""
        began_ns = START_NS + int(ms * MS)
        at = {"ts_ns": began_ns, "boot": boot, "cap_seq": 0, "date": date(2001, 9, 9), "gateway": gateway}
        none = {"kind": 3, "hub": "", "bus": "", "peer": "", "dir": 0, "count": 0, "verdict": 0}
        inner = {
            "kind": Kind.TOPOLOGY.value,
            "rows": 0,
            "enveloped": 0,
            "last_cap_seq": 0,
            "last_ns": began_ns,
        }
        self.summaries.append({**at, **none, "payload": json.dumps(hubs).encode(), "contents": inner})

    def restart(self, ms: float, gateway: str) -> None:
        """End the run of a recorder, so that the next row is the first of another."""
        self.missed(ms, gateway, 0)
        self.boots[gateway] += 1
        self.numbers[gateway] = 0

    def _boot(self, gateway: str) -> int:
        return 5 + self.boots[gateway]

    def _number(self, gateway: str, rows: int) -> int:
        """Return the number of a gateway's next row, and go on by `rows`."""
        self.numbers[gateway] += rows
        return self.numbers[gateway] - rows

    def _stop(self) -> None:
        """Write the last row of each recorder that is stopped."""
        end_ns = max((packet.ts_ns for packet in self.packets), default=START_NS)
        for gateway in sorted(self.numbers.keys() - {*self.killed}):
            self.missed((end_ns - START_NS) / MS, gateway, 0)

    def rows(self, spark: "SparkSession") -> "DataFrame":
        if not self.goes_on:
            self._stop()
            self.goes_on = True
        made = [row(packet) for packet in self.packets]
        parts = [made[start : start + _PART] for start in range(0, len(made), _PART)] or [[]]
        rows, *more = (spark.createDataFrame(one, DDL_PARTITIONED) for one in parts)
        for one in more:
            rows = rows.unionByName(one)
        if not self.summaries:
            return rows
        wanted = rows.schema.names
        summaries = [tuple(one.get(name) for name in wanted) for one in self.summaries]
        return rows.unionByName(spark.createDataFrame(summaries, DDL_PARTITIONED))


def cross(made: Capture, at_ms: float, late_ms: float, number: int, is_lost: bool, goes_back: bool) -> None:
    """Have a frame cross the wire between gw-a and gw-b, and another one go back; gw-b may lose the first.

    It comes in at `at_ms` by the clock of gw-a, which is `late_ms` by that of gw-b.
    """
    there, back = frame("motor", str(number)), frame("light", str(number))
    made.seen(at_ms, "gw-a", "bus a", "bus a", RX, there)
    made.seen(at_ms + 0.1, "gw-a", "bridge a", "bus a", RX, there)
    made.seen(at_ms + 0.2, "gw-a", "bridge a", "wire", TX, there)
    made.seen(late_ms + 1.2, "gw-b", "bridge b", "wire", RX, there)
    if not is_lost:
        made.seen(late_ms + 1.3, "gw-b", "bridge b", "bus b", TX, there)
    if goes_back:
        made.seen(late_ms + 50, "gw-b", "bridge b", "bus b", RX, back)
        made.seen(late_ms + 50.1, "gw-b", "bridge b", "wire", TX, back)
        made.seen(at_ms + 51.1, "gw-a", "bridge a", "wire", RX, back)
        made.seen(at_ms + 51.2, "gw-a", "bridge a", "bus a", TX, back)
