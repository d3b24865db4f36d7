"""The frames by which gateways tell each other, and programs on a bus, of alarms. Pure.

The pattern is `buscoupler/alarm/NAME`, then the tokens of the subject; the data are JSON. A gateway that
judges alarms says so on `buscoupler/alarm` alone. A frame that fits no other form is no announcement.
"""

import json
import re
from typing import Final, NamedTuple

from appliance.alarms.states import TEXT_MAX, State, state_of
from bus.keys import Keyring
from bus.names import ALARM
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, PUB, TOKENS_MAX, pack, published
from bus.wire.notation import pattern_of
from bus.wire.pattern import token

PATTERN: Final = tuple(pattern_of(ALARM))
_TAG: Final = re.compile(rb',"tag":"([0-9a-f]{16})"}\Z')
_TAG_BYTES: Final = 26
KEY_TOKENS_MAX: Final = TOKENS_MAX - len(PATTERN) - 1


class Announcement(NamedTuple):
    """The word of a gateway: the token of the alarm's name, the tokens of its subject, and the state.

    Without a state it says only that the gateway is there, at a time by its clock.
    """

    gateway: str
    alarm: int = 0
    key: tuple[int, ...] = ()
    state: State | None = None
    time_ns: int = 0


def presence(gateway: str, time_ns: int, ring: Keyring | None = None) -> bytes:
    """Return the frame by which a gateway says that it is there. `ring` signs it."""
    return _packed(PATTERN, _json({"gateway": gateway, "time_ns": time_ns}), ring)


def announced(
    gateway: str, alarm: str, key: tuple[int, ...], state: State, ring: Keyring | None = None
) -> bytes:
    """Return the frame that announces a state. Words that do not fit are cut. `ring` signs it."""
    record = {"gateway": gateway, "alarm": alarm, **state.as_record()}
    data = _json(record)
    if len(data) > DATA_BYTES_MAX - _TAG_BYTES:
        data = _json(record | {"of": state.of[:40], "cause": state.cause[:40], "by": state.by[:40]})
    return _packed((*PATTERN, token(alarm), *key), data, ring)


def heard(message: bytes) -> Announcement | None:
    """Return the announcement in a message; None if it is none."""
    frame = published(message, PATTERN)
    if frame is None:
        return None
    try:
        record = json.loads(frame.data.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(gateway := record.get("gateway"), str):
        return None
    gateway = gateway[:TEXT_MAX]
    if len(frame.tokens) == len(PATTERN):
        time_ns = record.get("time_ns")
        return Announcement(gateway, time_ns=time_ns) if isinstance(time_ns, int) else None
    state = state_of(record)
    alarm, *key = frame.tokens[len(PATTERN) :]
    return None if state is None else Announcement(gateway, alarm, tuple(key), state)


def unproven(message: bytes, ring: Keyring) -> str:
    """Return why no gateway with the keys said an announcement: `unsigned`, `forged`; "" if one did."""
    found = _TAG.search(message)
    if found is None:
        return "unsigned"
    signed = message[FRAME_BYTES_MIN : found.start()]
    return "" if ring.verify(bytes.fromhex(found[1].decode()), signed) else "forged"


def _packed(tokens: tuple[int, ...], data: bytes, ring: Keyring | None) -> bytes:
    """Return a frame. With a ring, the tag of its tokens and its JSON is the last value of that."""
    if ring is None:
        return pack(PUB, tokens, data)
    open_end = data[:-1]
    tag = ring.sign(pack(PUB, tokens, open_end)[FRAME_BYTES_MIN:])
    return pack(PUB, tokens, open_end + b',"tag":"%s"}' % tag.hex().encode())


def _json(record: dict[str, object]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()
