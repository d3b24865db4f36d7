"""The frames by which gateways tell each other, and programs on a bus, of alarms. Pure.

The pattern is `buscoupler/alarm/NAME`, then the tokens of the subject; the data are JSON. A gateway that
judges alarms says so on `buscoupler/alarm` alone. A frame that fits no other form is no announcement.
"""

import json
from typing import Final, NamedTuple

from appliance.alarms.states import TEXT_MAX, State, state_of
from bus.names import ALARM
from bus.wire.frame import DATA_BYTES_MAX, PUB, TOKENS_MAX, is_frame, pack, unpack
from bus.wire.notation import pattern_of
from bus.wire.pattern import token

PATTERN: Final = tuple(pattern_of(ALARM))
KEY_TOKENS_MAX: Final = TOKENS_MAX - len(PATTERN) - 1


class Announcement(NamedTuple):
    """The word of a gateway: the token of the alarm's name, the tokens of its subject, and the state.

    Without a state it says only that the gateway is there.
    """

    gateway: str
    alarm: int = 0
    key: tuple[int, ...] = ()
    state: State | None = None


def presence(gateway: str) -> bytes:
    """Return the frame by which a gateway says that it is there."""
    return pack(PUB, PATTERN, _json({"gateway": gateway}))


def announced(gateway: str, alarm: str, key: tuple[int, ...], state: State) -> bytes:
    """Return the frame that announces a state. Words that do not fit are cut."""
    record = {"gateway": gateway, "alarm": alarm, **state.as_record()}
    data = _json(record)
    if len(data) > DATA_BYTES_MAX:
        data = _json(record | {"of": state.of[:40], "cause": state.cause[:40], "by": state.by[:40]})
    return pack(PUB, (*PATTERN, token(alarm), *key), data[:DATA_BYTES_MAX])


def heard(message: bytes) -> Announcement | None:
    """Return the announcement in a message; None if it is none."""
    if not is_frame(message):
        return None
    kind, tokens, data = unpack(message)
    if kind != PUB or tokens[: len(PATTERN)] != PATTERN:
        return None
    try:
        record = json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(gateway := record.get("gateway"), str):
        return None
    gateway = gateway[:TEXT_MAX]
    if len(tokens) == len(PATTERN):
        return Announcement(gateway)
    state = state_of(record)
    alarm, *key = tokens[len(PATTERN) :]
    return None if state is None else Announcement(gateway, alarm, tuple(key), state)


def _json(record: dict[str, object]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()
