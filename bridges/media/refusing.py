"""The results of commands for a link that has no device: they are refused, and whoever sent them hears so."""

from asyncio import AbstractEventLoop
from contextvars import Context

from bridges.protocols.asking import Asking
from bridges.protocols.commands import Results
from bridges.protocols.protocol import Protocol
from bus.hub import Hub
from bus.ledger import Stats
from bus.vacancy import NO_DEVICE, Filter
from bus.values import RESULTS_FULL
from bus.wire.batch import Batch, from_payloads, payloads


class Refusing:
    """A link's answer to commands that come while it has no pipe, as results that come in from nobody.

    `stats` counts results that are not told.
    """

    def __init__(self, record: Asking, stats: Stats, hub: Hub, loop: AbstractEventLoop) -> None:
        self._results, self._stats, self._hub, self._loop = Results(record.rows), stats, hub, loop

    def missed(self, batch: Batch, _: Stats) -> int:
        """Refuse the commands in a batch that the link misses; return how many messages that are.

        The results come after the batch, and not in the middle of it.
        """
        waits = self._results.is_due
        for message in payloads(batch):
            self._results.refuse(message, NO_DEVICE)
        if self._results.is_due and not waits:
            Context().run(self._loop.call_soon, self._tell)
        return batch.count

    def _tell(self) -> None:
        said, untold = self._results.take_said()
        self._stats.reject(RESULTS_FULL, untold)
        self._hub.publish(from_payloads(said))


def refusing(protocol: Protocol, stats: Stats, hub: Hub, loop: AbstractEventLoop) -> Filter | None:
    """Return what a link with this protocol is to do with the messages that it misses; None for nothing."""
    return Refusing(protocol, stats, hub, loop).missed if isinstance(protocol, Asking) else None
