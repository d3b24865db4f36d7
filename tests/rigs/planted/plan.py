"""`Plan` says what to plant, and `Truth` what was planted."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
START_NS: Final = 1_780_000_000_000_000_000  # a round number, within a day for the sizes in use
KINDS: Final = ("fridge", "oven", "motor", "door")
ENVELOPES: Final = ("all", "trunk", "none")
HEARTBEAT: Final = "heartbeat"
CAPTURES: Final = (*ENVELOPES, HEARTBEAT)
"""The sorts of captures (`plan_of`): by the rows that have an envelope; or 30 % of the frames are one
heartbeat without an envelope, and the others have one on the trunk."""
FIRST_KINDS: Final = len(KINDS) // 2  # of a segment's two bridges, the first carries these
FILTERING: Final = 1  # the gateway whose bridge has a filter
FILTERED: Final = 2  # the sensor that this keeps out
BEATING: Final = 1  # the sensor that sends the heartbeat


@dataclass
class Plan:
    """The size of a capture, and its rates of faults. `envelope`: the rows with one: all, trunk or none."""

    rows: int = 100_000
    gateways: int = 4
    seed: int = 1
    rate: float = 2000.0
    sensors: int = 200
    lost: float = 0.002
    doubled: float = 0.001
    echoed: float = 0.0005
    aged: float = 0.0005
    takeovers: int = 2
    gap_s: float = 0.25
    holes: int = 0  # times in which a recorder missed rows; no fault is planted near them
    hole_s: float = 0.3
    filtered: bool = False  # the second segment's bridge keeps the frames of one sensor out
    repeated: float = 0.02
    beside: bool = False  # a second bridge beside each, which carries the later half of `KINDS`
    late: float = 0.0  # of the frames that cross: they come 1.2 s late on one segment; no other fault is near
    heartbeat: float = 0.0  # of the frames: equal ones without envelope, but for the time around takeovers
    envelope: str = "trunk"
    offsets_ns: tuple[int, ...] = (0, 1_500_000, -700_000, 300_000)
    names: int = 1000  # in the file of names
    collisions: int = 3  # pairs of names in that file that share a token
    unknown: int = 2  # sensors that are not in that file

    @property
    def frames(self) -> int:
        return self.rows // (2 + 2 * self.gateways - 1)


@dataclass
class Truth:
    """The planted faults and values, in the words of the jobs."""

    frames: int = 0
    beats: int = 0
    rows: int = 0
    missing: Counter[str] = field(default_factory=Counter)  # "STAGE GATEWAY SEGMENT"
    duplicates: Counter[str] = field(default_factory=Counter)  # "SEGMENT"
    echoes: Counter[str] = field(default_factory=Counter)
    takeovers: list[tuple[str, str, str, int]] = field(default_factory=list)  # bus, from, to, gap in ns
    by_kind: Counter[str] = field(default_factory=Counter)
    last: dict[int, tuple[int, str]] = field(default_factory=dict)  # sensor token: (ts_ns, text)
    ledger: Counter[str] = field(default_factory=Counter)  # "GATEWAY SEGMENT REASON"
    missed: Counter[str] = field(default_factory=Counter)  # "GATEWAY": rows of its recorder
    offsets_ns: dict[str, int] = field(default_factory=dict)
    collisions: dict[int, list[str]] = field(default_factory=dict)  # token -> the names that share it
    unknown: Counter[int] = field(default_factory=Counter)  # token without a name -> its rows


def plan_of(sort: str, rows: int, **more: Any) -> Plan:
    """Plan a capture of one of the sorts in `CAPTURES`."""
    if sort == HEARTBEAT:
        return Plan(rows, heartbeat=0.3, **more)
    return Plan(rows, envelope=sort, **more)
