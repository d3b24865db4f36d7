"""A tiny query language with the face that the broker needs of a query, and a keeper in memory."""

from collections.abc import Mapping
from typing import Any

from devices.syndication.state.producers import Entry


class Kept(dict[str, Entry]):
    """A keeper that holds entries by id. `changes` counts how often it was told something."""

    changes = 0

    def keep(self, entry: Entry) -> None:
        self[entry.id] = entry
        self.changes += 1

    def forget(self, id: str) -> None:
        self.pop(id, None)
        self.changes += 1


class FakeQuery:
    """Written `has KEY`, `no KEY`, `KEY = TEXT`, `KEY != TEXT`, `all` or `none`; `|` is an or.

    `costs NUMBER KEY` is as `has KEY`, and has so many instructions of patterns.
    """

    evaluations = 0
    """Of all queries together."""

    def __init__(self, text: str) -> None:
        self.text, self.memory_bytes = text, len(text)
        self._parts = [part.split() for part in text.split("|")]
        self.instructions = {part[2]: int(part[1]) for part in self._parts if part[0] == "costs"}
        self._parts = [["has", part[2]] if part[0] == "costs" else part for part in self._parts]
        self.comparisons = {part[0]: 40 for part in self._parts if len(part) == 3}
        keys = {2: 1, 3: 0}  # where the key stands, by the number of words
        self.keys = frozenset(part[keys[len(part)]] for part in self._parts if len(part) in keys)

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        FakeQuery.evaluations += 1
        return any(_matches(part, metadata) for part in self._parts)


def _matches(part: list[str], metadata: Mapping[str, Any]) -> bool:
    match part:
        case [word]:
            return word == "all"
        case ["has" | "no" as word, key]:
            return (key in metadata) == (word == "has")
        case [key, relation, text]:
            return (metadata.get(key) == text) == (relation == "=")
    raise ValueError(part)
