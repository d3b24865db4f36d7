"""The intake of one bus: it turns frames into publications of producers, by rules. Pure.

Each full pattern under a rule is a producer. It is present from its first frame until it was silent for the
rule's `idle_s`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from struct import unpack
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

from bus.names import Names
from bus.watch.canaries import TOKEN as CANARY
from bus.wire.frame import FRAME_BYTES_MIN, PUB, TOKENS_MAX, is_frame
from bus.wire.notation import text_of
from bus.wire.pattern import Pattern, hexadecimal
from devices.syndication.buses.codecs import codec
from devices.syndication.buses.rules import ProducerRule
from devices.syndication.client import ClientMessage
from devices.syndication.wire.messages import Form, Publication

NAMESPACE: Final = UUID("6ae35fb3-45c6-4d31-a7a6-1d6c1d0b9b0e")
_TEXT_BYTES: Final = len("0x00000000/") * TOKENS_MAX
_CANARY: Final = CANARY.to_bytes(4, "big")


def producer_id(bus: str, tokens: Sequence[int]) -> str:
    """Return the id of the producer for a full pattern on a bus: the same at all times and on all brokers."""
    return str(uuid5(NAMESPACE, "/".join((bus, *map(hexadecimal, tokens)))))


class Source:
    """A producer of a rule that has published its metadata, and when its last frame came."""

    __slots__ = ("heard_s", "id")

    def __init__(self, id: str) -> None:
        self.id = id
        self.heard_s = 0.0


class Speaker:
    """A rule as the client (`devices.syndication.client.Client`) that speaks for its producers.

    `producers` has them by their tokens in bytes, the one with the oldest last frame first.
    """

    def __init__(self, rule: ProducerRule) -> None:
        self.rule = rule
        self.host = f"bus {rule.bus} {text_of(rule.pattern)}"
        self.codec = codec(rule)
        self.producers: dict[bytes, Source] = {}

    def take(self, messages: Sequence[ClientMessage]) -> None:
        """Do nothing: the rule has no subscription."""

    def refuse(self, why: str) -> None:
        """Do nothing: the rule has no subscription."""

    def deny(self, why: str, form: Form) -> None:
        """Do nothing: the refusal is counted, and nobody waits for an answer."""


class Taken(NamedTuple):
    """A frame that falls under a rule: its tokens in bytes, and its data."""

    speaker: Speaker
    key: bytes
    data: bytes


class Intake:
    """The rules of one bus. `names` are used to show patterns in metadata.

    `known(id)` returns the metadata of a producer that the broker remembers. Keys of no rule are deleted.
    """

    def __init__(
        self,
        rules: Iterable[ProducerRule],
        names: Iterable[int | str],
        known: Callable[[str], Mapping[str, Any]],
    ) -> None:
        self._known, self._names = known, Names(names)
        self._by_prefix = {_bytes(Pattern(*rule.pattern)): Speaker(rule) for rule in rules}
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix}, reverse=True)

    @property
    def speakers(self) -> Collection[Speaker]:
        """The rules of the bus."""
        return self._by_prefix.values()

    def take(self, message: bytes) -> Taken | str:
        """Return a message as a frame under a rule, or the reason why it is none."""
        if not is_frame(message):
            return "no frame"
        end = FRAME_BYTES_MIN + 4 * message[1]
        key = message[FRAME_BYTES_MIN:end]
        speaker = self._speaker(key)
        if speaker is None:
            return "pattern"
        if message[0] != PUB:
            return "type"
        return "canary" if key.endswith(_CANARY) else Taken(speaker, key, message[end:])

    def _speaker(self, key: bytes) -> Speaker | None:
        """Return the rule with the longest pattern with which the tokens begin; None if there is none."""
        for length in self._lengths:
            speaker = self._by_prefix.get(key[:length])
            if speaker is not None:
                return speaker
        return None

    def read(self, taken: Taken) -> tuple[Source, Publication] | str:
        """Return the publication of a frame, or why there is none. Call `accept` once it is accepted."""
        speaker, key, data = taken
        value = speaker.codec.decode(data)
        if value is None:
            return speaker.codec.reason
        source = speaker.producers.get(key)
        if source is not None:
            return source, Publication(source.id, {}, value)
        if len(speaker.producers) >= speaker.rule.producers:
            return "producers of one rule"
        tokens = unpack(f">{len(key) // 4}I", key)
        source = Source(producer_id(speaker.rule.bus, tokens))
        return source, Publication(source.id, self._metadata(speaker.rule, source.id, tokens), value)

    def _metadata(self, rule: ProducerRule, id: str, tokens: Sequence[int]) -> dict[str, Any]:
        shown = self._names.show(tokens)
        pattern = shown if len(shown.encode()) <= _TEXT_BYTES else "/".join(map(hexadecimal, tokens))
        lists = {key: list(value) for key, value in rule.metadata.items() if isinstance(value, tuple)}
        metadata = {"Bus": rule.bus, "Pattern": pattern, **rule.metadata, **lists}
        return {key: None for key in self._known(id) if key not in metadata} | metadata

    def accept(self, taken: Taken, source: Source, now_s: float) -> None:
        """Note that a producer is present. Its metadata are not repeated while it stays so."""
        producers = taken.speaker.producers
        producers.pop(taken.key, None)
        producers[taken.key] = source
        source.heard_s = now_s

    def expire(self, now_s: float) -> Iterator[tuple[Speaker, list[str]]]:
        """Forget producers that were silent for too long, and yield their ids by rule."""
        for speaker in self.speakers:
            limit_s, gone = now_s - speaker.rule.idle_s, list[bytes]()
            for key, source in speaker.producers.items():
                if source.heard_s > limit_s:
                    break
                gone.append(key)
            if gone:
                yield speaker, [speaker.producers.pop(key).id for key in gone]


def _bytes(tokens: Iterable[int]) -> bytes:
    return b"".join(token.to_bytes(4, "big") for token in tokens)
