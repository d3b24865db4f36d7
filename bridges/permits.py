"""The permit of a peer at an address of a bus: the messages that it may send, or hear. Pure."""

from collections.abc import Sequence

from bridges.rules import Patterns, Rule, Rules
from bridges.runs import Kept, Run, keep_run, scan
from bus.transports.peers import Peer
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.envelope import take_apart

REASON = "peers"
"""The reason of a message that is not passed on: the address's list does not let the peer send or hear it."""


class Permit:
    """The messages that one peer may send, or hear: their frame matches one of `patterns`; all if None.

    Messages that are no frames match no pattern, so they pass only where all do.
    """

    def __init__(self, patterns: Patterns | None) -> None:
        allowed = [()] if patterns is None else list(patterns)
        rule = Rule(allowed) if allowed else Rule(deny=[()])
        self._rules = Rules(rule)
        self._opaque = bool(allowed) and rule.opaque

    @property
    def is_open(self) -> bool:
        """Whether everything passes."""
        return not self._rules

    def permitted(self, batch: Batch) -> Batch | None:
        """Return the messages of a batch that pass, the very batch if all do; None if none does."""
        if not self._rules:
            return batch
        data, kept = batch.keep(), Kept()
        end = scan(data, batch.count, self._judge_run, self._judge_each, kept)
        if kept.count == batch.count:
            return batch
        return Batch(kept.joined(data, end), kept.count) if kept.count else None

    def _judge_run(self, data: bytes, run: Run, kept: Kept) -> bool:
        keep_run(data, run, self._rules, kept)
        return True

    def _judge_each(self, data: bytes, position: int, count: int, kept: Kept) -> int:
        """Judge one message after the other; return where the next one begins."""
        for _ in range(count):
            head, start = position, position + LENGTH_BYTES
            position = start + LENGTH.unpack_from(data, head)[0]
            if self._passes(data[start:position]):
                kept.count += 1
            else:
                kept.parts.append(data[kept.begun : head])
                kept.begun = position
        return position

    def _passes(self, message: bytes) -> bool:
        _, content, is_frame = take_apart(message)
        return self._rules.admit(content) if is_frame else self._opaque


def refuses(peers: Sequence[Peer], batch: Batch, sending: bool) -> bool:
    """Return whether no peer on the list of an address may send a batch, or hear it."""
    lists = [peer.send if sending else peer.hear for peer in peers]
    return bool(lists) and all(Permit(patterns).permitted(batch) is None for patterns in lists)
