"""The translator of telegrams of meters. Pure."""

from collections.abc import Iterator, Sequence

from bridges.protocols.blocks import FIELDS_MAX, BlockTranslator, Field, Gatherer, Unfit
from bridges.protocols.p1.lines import Line, fields_of, parse
from bridges.protocols.p1.protocol import P1
from bridges.protocols.p1.telegram import END, END_BYTES, begun, is_blank, lines_of
from bridges.protocols.translator import Wire


class P1Translator(BlockTranslator):
    """A translator of telegrams.

    What stands before the beginning of another telegram lost its end: it is rejected as `cut`. What is in
    none is `no beginning`. A line that is none of a meter is `malformed`; without a CRC the whole telegram
    is. A meter that has once written a CRC is never believed without one.
    """

    def __init__(self, record: P1, wire: Wire) -> None:
        super().__init__(wire, record.root, record.form, Gatherer(END, END_BYTES, record.longest_bytes))
        self._wanted, self._needs_sum = record.wanted, record.checksum == "required"

    def _begun(self, run: bytes) -> bytes:
        starts = begun(run)
        at = starts[-1] if starts else len(run)
        if not is_blank(run[:at]):
            self.reject("cut" if len(starts) > 1 else "no beginning", at)
        return run[at:]

    def _fields(self, block: bytes) -> Sequence[Field]:
        texts, has_sum = lines_of(block)
        if self._needs_sum and not has_sum:
            raise Unfit("no checksum")
        self._needs_sum = self._needs_sum or has_sum
        if len(texts) > FIELDS_MAX:
            raise Unfit("too many fields")
        return [field for line in self._lines(texts, has_sum) for field in fields_of(line)]

    def _lines(self, texts: Sequence[str], has_sum: bool) -> Iterator[Line]:
        """Yield the lines that are wanted."""
        lines = [parse(text) for text in texts]
        if None in lines and not has_sum:
            raise Unfit("malformed")
        for text, line in zip(texts, lines, strict=True):
            if line is None:
                self.reject("malformed", len(text))
            elif self._is_wanted(line):
                yield line

    def _is_wanted(self, line: Line) -> bool:
        wanted = self._wanted
        return wanted is None or (line.channel, line.code) in wanted or ("", line.code) in wanted
