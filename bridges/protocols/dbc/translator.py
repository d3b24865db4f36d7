"""The translator of CAN messages that a database describes."""

from collections.abc import Collection, Sequence
from math import inf

from bridges.items import CanFrame
from bridges.protocols.dbc.inward import Inward
from bridges.protocols.dbc.layout import Message
from bridges.protocols.dbc.outward import Outward
from bridges.protocols.dbc.protocol import Dbc
from bridges.protocols.dbc.station import Manner
from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Sent, Translator, Turn, Wire


class DbcTranslator(Translator[CanFrame]):
    """A translator of one CAN bus. Raises OSError, ImportError or ValueError for an unreadable database."""

    def __init__(self, record: Dbc, wire: Wire) -> None:
        super().__init__(wire)
        database = record.database()
        self._record = record
        wanted = record.wanted(database)
        self._outward = Outward(database, wanted, wire.may_act, self.reject, self._tokens_to, wire.unfit)
        messages = [database.messages[name] for name in (*record.received(database), *wanted.names)]
        manner = _manner(record, wire, self)
        self._inward = Inward(
            messages, manner, wire.stats.rejected, self.reject, self._tokens_from, self._outward.taker_of
        )
        self._settle()

    def _tokens_from(self, message: Message, source: int) -> tuple[int, ...]:
        return tokens_of(self._record.base(message, source))

    def _tokens_to(self, message: Message) -> tuple[int, ...]:
        return tokens_of(self._record.base(message, self._record.address))

    def _arm(self) -> None:
        """Tell the wire when to call `turn`."""
        self.due_s = min(self._inward.due_s, self._outward.due_s)

    def _settle(self) -> None:
        """Tell the wire how things are, too."""
        self._arm()
        self.is_free, self.condition = self._outward.is_free, self._outward.condition

    def receive(self, items: Sequence[CanFrame], now_s: float) -> list[bytes]:
        found = self._inward.receive(items, now_s)
        self.found += self._inward.found
        self._inward.found = 0
        self._arm()
        return found

    def misfit(self, identifiers: Collection[int]) -> str:
        if self._inward.fits_as_j1939(identifiers):
            return "J1939: `j1939: true`"
        return "another database"

    def send(self, message: bytes, now_s: float) -> Sent[CanFrame]:
        sent = self._outward.send(message, now_s)
        self._settle()
        return sent

    def turn(self, now_s: float) -> Turn[CanFrame]:
        items = self._outward.turn(now_s)
        messages = self._inward.turn(now_s)
        self._settle()
        return Turn(messages, items)


def _manner(record: Dbc, wire: Wire, translator: DbcTranslator) -> Manner:
    return Manner(
        record.form,
        record.per == "message",
        record.publish == "change",
        record.refresh_ms / 1000 if record.publish == "change" else inf,
        (record.every_ms or 0.0) / 1000,
        wire.unix_s,
        translator.reject,
    )
