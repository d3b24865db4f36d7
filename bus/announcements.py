"""Announcements: what gateways say of themselves, as JSON on a reserved pattern (docs/wire/log.md).

Each says who speaks, and when by the speaker's clock; with keys its last value is a tag of all before it. An
announcement is a frame. On a trunk it goes beside the messages, behind `ON_TRUNK`, and to and from a broker
with the type `RELAYED`: so no program hears it, and no ledger counts it as a message. Pure.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from bus.keys import Keyring
from bus.names import GATEWAY
from bus.wire.frame import BRIDGE, DATA_BYTES_MAX, FRAME_BYTES_MIN, PUB, pack, published
from bus.wire.notation import pattern_of

NOTE: Final = tuple(pattern_of(GATEWAY))
"""The pattern on which gateways say how they are."""
ON_TRUNK: Final = bytes.fromhex("e121f000")
"""The bytes before an announcement on a trunk; alone they say that announcements are taken.

An older appliance rejects these as `malformed`, and gets them once only.
"""
RELAYED: Final = BRIDGE | PUB
"""The type of an announcement on its way to or from a broker."""
SPEAKERS_MAX: Final = 1024
FORGET_S: Final = 60.0
"""A speaker who was not heard for so long may have another clock."""
_TAG: Final = re.compile(rb',"tag":"([0-9a-f]{16})"}\Z')
_NAME_MAX: Final = 256
_JSON: Final = json.JSONEncoder(separators=(",", ":"))
ROOM_BYTES: Final = DATA_BYTES_MAX - 26
"""The room for JSON in an announcement, which may be signed."""


class Announcement(NamedTuple):
    """The word of `gateway` at `time_ns` by its clock (0 if it does not say when).

    `tokens` stand behind the pattern, and `fields` is all of the JSON.
    """

    gateway: str
    time_ns: int
    tokens: tuple[int, ...]
    fields: Mapping[str, Any]


Hear = Callable[[bytes], Announcement | str]
"""A function that takes the announcement of a gateway, as a frame. It returns what that says, if it is to be
passed on; else why it is rejected, or "" where it is nobody's fault.
"""


def json_of(fields: Mapping[str, object]) -> bytes:
    """Return fields as the JSON of an announcement has them."""
    return _JSON.encode(fields).encode()


def announce(tokens: tuple[int, ...], data: bytes, ring: Keyring | None = None) -> bytes:
    """Return the frame of an announcement, whose `data` are a JSON object with `gateway` and, mostly,
    `time_ns`. `ring` signs its tokens and data.
    """
    if ring is None:
        return pack(PUB, tokens, data)
    open_end = data[:-1]
    tag = ring.sign(pack(PUB, tokens, open_end)[FRAME_BYTES_MIN:])
    return pack(PUB, tokens, open_end + b',"tag":"%s"}' % tag.hex().encode())


def read(message: bytes, pattern: tuple[int, ...] = NOTE) -> Announcement | None:
    """Return the announcement under a pattern in a message; None if it is none."""
    frame = published(message, pattern)
    if frame is None:
        return None
    try:
        fields = json.loads(frame.data.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or not isinstance(gateway := fields.get("gateway"), str):
        return None
    time_ns = fields.get("time_ns", 0)
    if not isinstance(time_ns, int):
        return None
    return Announcement(gateway[:_NAME_MAX], time_ns, frame.tokens[len(pattern) :], fields)


def unproven(message: bytes, ring: Keyring) -> str:
    """Return why no gateway with the keys said an announcement: `unsigned`, `forged`; "" if one did."""
    found = _TAG.search(message)
    if found is None:
        return "unsigned"
    signed = message[FRAME_BYTES_MIN : found.start()]
    return "" if ring.verify(bytes.fromhex(found[1].decode()), signed) else "forged"


def on_trunk(frame: bytes) -> bytes:
    """Return the message that carries an announcement on a trunk."""
    return ON_TRUNK + frame


def off_trunk(message: bytes) -> bytes:
    """Return the frame, b"" for none, in a message of a trunk that begins with `ON_TRUNK`."""
    return message[len(ON_TRUNK) :]


def relayed(frame: bytes) -> bytes:
    """Return an announcement as brokers get and send it."""
    return bytes((RELAYED,)) + frame[1:]


def said(frame: bytes) -> bytes:
    """Return the announcement that came by a broker as a frame of a bus."""
    return bytes((PUB,)) + frame[1:]


class Clocks:
    """The clocks of speakers when they were last heard: an announcement counts once, and none that is older.

    With `forgets`, a speaker who was silent for long may go back in time, as after a restart with a wrong
    clock; without, nobody can play one again that has died. At most `SPEAKERS_MAX` are known.
    """

    def __init__(self, forgets: bool = True) -> None:
        self._forgets = forgets
        self._heard: dict[str, tuple[int, float]] = {}

    def take(self, gateway: str, time_ns: int, now_s: float) -> bool:
        """Note an announcement at `now_s`, monotonic. Return whether it is new."""
        time_before_ns, heard_s = self._heard.get(gateway, (-1, now_s))
        is_new = time_ns > time_before_ns or (self._forgets and now_s - heard_s > FORGET_S)
        if is_new and (gateway in self._heard or self._has_room(now_s)):
            self._heard[gateway] = time_ns, now_s
            return True
        return False

    def _has_room(self, now_s: float) -> bool:
        if len(self._heard) >= SPEAKERS_MAX:
            self._heard = {name: one for name, one in self._heard.items() if now_s - one[1] <= FORGET_S}
        return len(self._heard) < SPEAKERS_MAX
