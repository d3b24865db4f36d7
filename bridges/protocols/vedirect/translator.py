"""The translator of VE.Direct. Pure."""

from collections.abc import Sequence

from bridges.protocols.blocks import BlockTranslator, Field, Gatherer
from bridges.protocols.translator import Wire
from bridges.protocols.vedirect.labels import TEXTS, UNITS
from bridges.protocols.vedirect.protocol import VeDirect
from bridges.protocols.vedirect.text import END, END_BYTES, Plain, fields_of


class VeDirectTranslator(BlockTranslator):
    """A translator of blocks of fields.

    Only the end of a block can be seen. So what comes up to the first end is rejected as `no beginning`, as
    with a sum of 8 bits the rest of a block would pass once in 256 times. HEX frames are counted as such.
    """

    def __init__(self, record: VeDirect, wire: Wire) -> None:
        super().__init__(wire, record.root, record.form, Gatherer(END, END_BYTES, record.longest_bytes))
        self._wanted = None if record.receive is None else frozenset(record.receive)
        self._plain, self._is_aligned = Plain(), False

    def _text(self, data: bytes) -> bytes:
        text, count = self._plain.feed(data)
        self.wire.stats.reject("hex frame", count)
        return text

    def _begun(self, run: bytes) -> bytes:
        if self._is_aligned:
            return run
        self._is_aligned = True
        self.reject("no beginning", len(run))
        return b""

    def _fields(self, block: bytes) -> Sequence[Field]:
        return [
            Field((label,), value, UNITS.get(label, ""), _is_number(label))
            for label, value in fields_of(block).items()
            if self._wanted is None or label in self._wanted
        ]

    def end(self, now_s: float) -> list[bytes]:
        self.noise += len(self._plain.take_rest())
        self._is_aligned = False
        return super().end(now_s)


def _is_number(label: str) -> bool | None:
    return True if label in UNITS else False if label in TEXTS else None
