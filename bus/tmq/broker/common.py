"""The things that all parts of one broker share, and the rules by which it judges clients."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from bus.ledger import Stats
from bus.serving.connection import OnObjects
from bus.serving.rejections import Rejections
from bus.serving.turns import Turns
from bus.tmq.broker.presence import AWAY
from bus.tmq.broker.registry import Registry
from bus.tmq.options import Options
from bus.tmq.wire import Hello

NAMED: Final = 4
"""The clients that one connection may register beside its own."""


@dataclass(frozen=True, slots=True)
class ClientRules:
    """The rules by which a broker judges clients; a reload replaces them.

    `connections` bounds those that are accepted; None: by descriptors and memory alone. `unconnected` bounds
    the clients of one host that keep no connection, `per_connection` those that one connection registers
    beside its own. `classic_prefixes=False`: a subscriber that has not shown itself to be ours is given only
    what is published under exactly its pattern (the reference client fails on a longer one).
    `foreign_hosts`: a client may register an address of another host than its own, which the broker then
    dials.
    """

    classic_prefixes: bool = True
    foreign_hosts: bool = False
    connections: int | None = None
    unconnected: int = AWAY
    per_connection: int = NAMED


class Common(NamedTuple):
    """The things that all parts of one broker share.

    `hello(flags)` makes the broker's greeting; `on_frames` gets packets from any connection, also what comes
    back on those that the broker made. Long work is done in `turns`. `stats` is the ledger of what clients
    were sent.
    """

    name: str
    options: Options
    hello: Callable[[int], Hello]
    on_frames: OnObjects
    registry: Registry
    turns: Turns
    reject: Rejections
    stats: Stats
