"""The record of raw CAN frames."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from bridges.items import Items
from bridges.protocols.protocol import Claim, Protocol, Way, tokens_of
from bridges.protocols.raw.judge import Names as TokenNames
from bridges.protocols.raw.judge import RawJudge
from bridges.protocols.selection import ALL, FILTERS_MAX, Selection, identifier_of, selection_of
from bus.key_types import Names, Patterns
from bus.names import IDENTIFIERS
from bus.schema import Check, Length, Notation, Single
from bus.wire.identifier import Identifier
from bus.wire.notation import text_of
from bus.wire.pattern import Pattern

_PATTERNS = 2048  # that a way lists one by one: all standard identifiers


def _check_item(item: int | str) -> None:
    selection_of((item,))


def _items_in(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


Items_ = Annotated[
    tuple[Annotated[int | str, Check(_check_item, "an identifier, a range or a mask")], ...],
    Length(0, 512),
    Notation(_items_in, "identifiers with commas, or all"),
    Single(),
]
Key = Annotated[str, Check(_check_item, "an identifier")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw(Protocol):
    """CAN frames as they are: each is `ROOT/ID` with its data."""

    MAKE: ClassVar = "bridges.protocols.raw.translator:RawTranslator"
    key: ClassVar = "raw"
    help: ClassVar = "CAN frames as they are"
    items: ClassVar[tuple[Items, ...]] = ("frames",)
    deaf: ClassVar[bool] = False
    sourceless: ClassVar[bool] = True

    root: Annotated[Names, Length(1, 200), "pattern in front of the identifier"] = ("can",)
    receive: Annotated[
        Items_, "identifiers, ranges `0x100-0x1ff` and masks `0x100/0x700` that come in; all that are not in "
        "`send` without it"
    ] = (ALL,)  # fmt: skip
    send: Annotated[Items_, "what leaves, in the same way, or `all`; nothing without it"] = ()
    ids: Annotated[Mapping[Key, Names], "patterns that stand for single identifiers"] = field(
        default_factory=dict
    )
    errors: Annotated[bool, "error frames come in, too; they are never sent"] = False

    def check(self) -> None:
        if any(len(items) > 1 and ALL in items for items in (self.receive, self.send)):
            raise ValueError("all stands alone: it has everything else in it")
        named = self.named_ids
        if len(named) < len(self.ids):
            raise ValueError("ids: one identifier is there twice")
        patterns = {Pattern(*names): identifier for identifier, names in named.items()}
        if len(patterns) < len(named):
            raise ValueError("ids: one pattern stands for two identifiers")
        root = Pattern(*self.root)
        if bad := next((one for one in patterns if root.matches(one) or not one), None):
            raise ValueError(
                f"ids: {text_of(bad.names)} is below root, where identifiers stand: choose another"
            )

    @property
    def named_ids(self) -> dict[Identifier, Names]:
        """The patterns of `ids` by their identifiers."""
        return {identifier_of(key): names for key, names in self.ids.items()}

    @property
    def received(self) -> Selection:
        """The identifiers that come in. Those that are sent do not, if `receive` leaves that open."""
        return selection_of(self.receive)

    @property
    def sent(self) -> Selection:
        """The identifiers that leave. A listed one has its remote frame with it."""
        return selection_of(self.send, remote=True)

    @property
    def spares_sent(self) -> bool:
        """Whether all comes in but what is sent."""
        return ALL in self.receive and ALL not in self.send

    @property
    def way(self) -> Way:
        return Way(self._patterns(self.received), self._patterns(self.sent) if self.send else ())

    def _patterns(self, chosen: Selection) -> Patterns:
        """Return the patterns of a set of identifiers, or of all where they are too many."""
        named = self.named_ids
        singles = chosen.singles(_PATTERNS)
        if singles is None:
            return (self.root, *(names for one, names in named.items() if one in chosen))
        return tuple(named.get(one) or (*self.root, one) for one in singles)

    @property
    def noun(self) -> str:
        return "one of `receive`"

    @property
    def same(self) -> str:
        ids = (f"{int(one):#x}={text_of(names)}" for one, names in sorted(self.named_ids.items()))
        return " ".join((text_of(self.root), *ids))

    @property
    def token_names(self) -> TokenNames:
        """The patterns of identifiers, in tokens."""
        named = {tokens_of(names): int(one) for one, names in self.named_ids.items()}
        return TokenNames(tokens_of(self.root), named)

    @property
    def judge(self) -> RawJudge | None:
        sets = self.received, self.sent
        is_listed = all(one.values is None or one.singles(_PATTERNS) is not None for one in sets)
        if is_listed and not (self.spares_sent and self.send):
            return None
        return RawJudge(self.token_names, *sets, self.spares_sent)

    @property
    def claim(self) -> Claim | None:
        return Claim(self.received, self.sent, self.spares_sent)

    @property
    def hears_errors(self) -> bool:
        return self.errors

    def filters(self) -> tuple[tuple[int, int], ...] | None:
        pieces = (self.received | self.sent).pieces
        return None if ALL in self.receive or len(pieces) > FILTERS_MAX else pieces

    def names(self) -> Iterator[str]:
        yield text_of(self.root) + IDENTIFIERS

    def patterns(self) -> Iterator[Names]:
        yield self.root
        yield from self.ids.values()

    def label(self) -> str:
        return f"raw {text_of(self.root)}"
