"""The probes of a broker: whom it asks."""

import asyncio

from bus.ledger import Stats
from bus.serving.rejections import Rejections
from bus.serving.turns import Turns
from bus.tmq.broker.clients import log
from bus.tmq.broker.common import Common
from bus.tmq.broker.outgoing import Outgoing, Reports
from bus.tmq.broker.probing import Probing
from bus.tmq.broker.registry import Registry
from bus.tmq.options import Options
from bus.tmq.wire import Hello
from bus.wire.frame import SUB

HERE, THERE = ("127.0.0.1", 1), ("127.0.0.1", 2)


def nothing(*_: object) -> None:
    """Hear a report."""


async def test_a_client_that_took_its_registration_back_while_others_were_looked_at_is_not_asked() -> None:
    """The search of a large registry takes several turns; then the broker's sweep ended with a traceback."""
    registry, stats = Registry(), Stats()
    hello, reject = Hello(1, 1000), Rejections("", {}, log)
    common = Common("", Options(), lambda _: hello, nothing, registry, Turns(), reject, stats)
    outgoing = Outgoing(common, Reports(nothing, nothing, nothing, nothing))
    probing = Probing(common, outgoing, lambda _: False)
    for part in (outgoing, probing):
        part.open(asyncio.get_running_loop())
    registry.share(SUB, (1,), THERE, 7, 0.0)
    probing.probe_lapsed([HERE, THERE])
    assert probing.count == stats.queued == 1
    outgoing.close()
