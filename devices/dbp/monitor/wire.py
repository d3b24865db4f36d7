"""The frames of the monitor (docs/wire/dbp.md, "The monitor"). Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from devices.dbp.ports import is_port
from devices.dbp.times import decimal, is_decimal

WORD: Final = "monitor"
Direction = Literal["in", "out"]
_DIRECTIONS: Final[dict[bytes, Direction]] = {b"in": "in", b"out": "out"}


_LEASE_MIN_MS, _LEASE_MAX_MS = 1000, 3_600_000  # a false node must not make its clients busy, or silent
_TIME_MAX_S: Final = 253_402_000_000.0  # in the year 9999, the last that calendars of Python have
_MS_MAX: Final = 1 << 53


class Passed(NamedTuple):
    """A message at a mirrored socket: its time in seconds since 1970, and its host, "" if it went out.

    At a `router` socket, the first of `frames` is the identity of the peer.
    """

    interface: str
    direction: Direction
    time_s: float
    host: str
    frames: tuple[bytes, ...]


def pack(passed: Passed) -> list[bytes]:
    """Return the frames in which a mirror publishes a message."""
    head = (
        passed.interface.encode(),
        passed.direction.encode(),
        decimal(passed.time_s),
        passed.host.encode(),
    )
    return [*head, *passed.frames]


def parse(frames: Sequence[bytes]) -> Passed | None:
    """Return the message in frames of a mirror; None if they are malformed."""
    if len(frames) < 4 or frames[1] not in _DIRECTIONS or not is_decimal(frames[2]):
        return None
    if float(frames[2]) > _TIME_MAX_S:
        return None
    interface, direction, time, host = frames[:4]
    name, peer = interface.decode(errors="replace"), host.decode(errors="replace")
    return Passed(name, _DIRECTIONS[direction], float(time), peer, tuple(frames[4:]))


class Grant(NamedTuple):
    """The address of a mirror, which listens for `lease_ms` after the last request.

    `host` is "" if it is the host that was asked.
    """

    host: str
    port: int
    lease_ms: int

    def pack(self) -> bytes:
        """Return the grant as JSON."""
        return json.dumps(self._asdict()).encode()


def read_grant(data: bytes) -> Grant | None:
    """Return the grant in an answer; None if it is malformed."""
    try:
        fields = json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    match fields:
        case {"host": str(host), "port": port, "lease_ms": int(lease_ms)} if is_port(port):
            return Grant(host, port, min(max(int(lease_ms), _LEASE_MIN_MS), _LEASE_MAX_MS))
    return None


class Life(NamedTuple):
    """The liveness of a service in its catalog. `beats` says whether it announced heartbeats."""

    state: str
    silence_ms: int
    interval_ms: int
    host: str
    beats: bool


def read_lives(fields: Mapping[str, Any]) -> dict[str, Life]:
    """Return the liveness of services by name, from the fields of an answer. Malformed ones are left out."""
    found = ((name, _life(value)) for name, value in fields.items())
    return {name: life for name, life in found if life is not None}


def _life(value: Any) -> Life | None:
    match value:
        case {
            "state": str(state), "silence_ms": int(silence_ms), "interval_ms": int(interval_ms),
            "host": str(host), "beats": bool(beats),
        } if max(abs(silence_ms), abs(interval_ms)) <= _MS_MAX:  # fmt: skip
            return Life(state, silence_ms, interval_ms, host, beats)
    return None
