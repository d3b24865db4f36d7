"""The parser of MAVLink against damaged messages: nothing raises, and the work is linear in the input."""

import json
import os
from random import SystemRandom
from typing import Any

from buscoupler_mavlink.protocol import Mavlink
from pymavlink.dialects.v20 import common

from bridges.protocols.translator import Wire
from bus.ledger import Stats
from bus.wire.frame import PUB, pack, unpack
from bus.wire.pattern import Pattern
from tests.fuzz.judge import families, fuzz, in_bytes, lines_of
from tests.fuzz.target import Pieces, Target, recorded, records

INPUTS = int(os.environ.get("FUZZ_INPUTS") or 300)
SEED = int(os.environ.get("FUZZ_SEED") or SystemRandom().randrange(1_000_000))
RECORD = Mavlink(send=("COMMAND_LONG", "STATUSTEXT"))


def said() -> list[bytes]:
    """Return streams of some messages of MAVLink 1 and 2."""
    peers = common.MAVLink(None, 1, 1), common.MAVLink(None, 2, 1)
    made = list[bytes]()
    for one in peers:
        told = [
            one.heartbeat_encode(2, 3, 81, 0, 4),
            one.statustext_encode(6, b"ready"),
            one.attitude_encode(1, 0.1, float("nan"), 0.3, 0, 0, 0),
        ]
        made += [bytes(message.pack(one, force_mavlink1=one is peers[1])) for message in told]
    return [b"".join(made), made[0] + b"noise" + made[1]]


def heard(pieces: Pieces) -> Any:
    stats = Stats()
    made = RECORD.translator(Wire("fuzz", "bytes", stats))
    found = [unpack(one) for piece in pieces for one in made.receive([piece], 0.0)]
    return [(one.tokens, one.data) for one in found], stats.rejected.get("gap")


def written(pieces: Pieces) -> Any:
    made = RECORD.translator(Wire("fuzz", "bytes", Stats()))
    found = list[Any]()
    for data in records(b"".join(pieces)):
        for name in RECORD.send:
            sent = made.send(pack(PUB, Pattern("mav", 255, name), data), 0.0)
            assert bool(sent.why) != bool(sent.items)
            found.append((list(sent.items), sent.why))
    return found


def commands() -> list[bytes]:
    kinds = common.MAVLink_command_long_message, common.MAVLink_statustext_message
    values = [json.dumps(dict.fromkeys(kind.ordered_fieldnames, 1)).encode() for kind in kinds]
    return [recorded(*values, b'{"severity":6,"text":"x"}', b'{"severity":1e999,"text":null}', b"[[[")]


TARGETS = Target("mavlink", "", heard, said), Target("mavlink-out", "", written, commands, whole=True)


def test_no_input_breaks_it() -> None:
    for target in TARGETS:
        fuzz(target, INPUTS, SEED)


def test_the_work_is_linear() -> None:
    for target in TARGETS:
        for once, twice in families(target, 1024):
            assert lines_of(target, [twice]) <= 3 * lines_of(target, [once]) + 2000, once[:40]
    for once, twice in families(TARGETS[0], 256):
        assert lines_of(TARGETS[0], in_bytes(twice)) <= 3 * lines_of(TARGETS[0], in_bytes(once)) + 2000
