"""The announcements of alarms, by which gateways tell each other, and programs on a bus, of them. Pure.

The pattern is `buscoupler/alarm/NAME`, then the tokens of the subject. A gateway that judges alarms says so
on `buscoupler/alarm` alone. `bus.announcements` has the form; one without a known state is none of an alarm.
"""

from typing import Final, NamedTuple

from appliance.alarms.states import TEXT_MAX, State, state_of
from bus.announcements import ROOM_BYTES, announce, json_of, read
from bus.keys import Keyring
from bus.names import ALARM
from bus.wire.frame import TOKENS_MAX
from bus.wire.notation import pattern_of
from bus.wire.pattern import token

PATTERN: Final = tuple(pattern_of(ALARM))
KEY_TOKENS_MAX: Final = TOKENS_MAX - len(PATTERN) - 1


class AlarmSaid(NamedTuple):
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
    return announce(PATTERN, json_of({"gateway": gateway, "time_ns": time_ns}), ring)


def announced(
    gateway: str, alarm: str, key: tuple[int, ...], state: State, ring: Keyring | None = None
) -> bytes:
    """Return the frame that announces a state. Words that do not fit are cut. `ring` signs it."""
    record = {"gateway": gateway, "alarm": alarm, **state.as_record()}
    data = json_of(record)
    for letters in (40, 8):
        if len(data) > ROOM_BYTES:
            data = json_of(record | {key: record[key][:letters] for key in ("of", "cause", "by")})
    return announce((*PATTERN, token(alarm), *key), data, ring)


def heard(message: bytes) -> AlarmSaid | None:
    """Return what a message says of an alarm; None if it says nothing."""
    found = read(message, PATTERN)
    if found is None:
        return None
    gateway = found.gateway[:TEXT_MAX]
    if not found.tokens:
        return AlarmSaid(gateway, time_ns=found.time_ns) if "time_ns" in found.fields else None
    state, (alarm, *key) = state_of(found.fields), found.tokens
    return None if state is None else AlarmSaid(gateway, alarm, tuple(key), state)
