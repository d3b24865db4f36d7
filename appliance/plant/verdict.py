"""The verdict on a plant: what its gateways say of themselves, compared with each other. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from appliance.plant.asking import GatewayAnswer
from appliance.plant.note import Note
from appliance.status.health import WORDS, Concern, Word, verdict
from appliance.status.words import HOLDS, span

CLOCK_MS: Final = 2000
"""Clocks that differ by more are told."""
LISTED: Final = 256
"""The most gateways in a status."""
_UNKNOWN: Final = (
    "not heard: nothing comes from it by trunks and brokers, as from an older version, and no page of it is "
    "within reach"
)

_SAME: Final = "`buscoupler deploy` gives all the same"
_MORE: Final = re.compile(r" \(and \d+ more\)$")  # reasons of a gateway: the line of the plant counts its own


class Seen(NamedTuple):
    """The knowledge of another gateway.

    `heard` is its last answer or announcement, None if there is none. `was_there`: it has answered before.
    `claims`: a broker here hears it.
    """

    heard: GatewayAnswer | None = None
    was_there: bool = False
    claims: bool = False


def judged(
    own: Note, addresses: Mapping[str, str], seen: Mapping[str, Seen], both: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return the plant as a status has it: the verdict, and a row for each of its gateways.

    `own` is the note of this gateway, `both` are the leases that several still say to hold.
    """
    known = {name: seen.get(name, Seen()) for name in addresses if name != own["gateway"]}
    concerns = [*_of_own(own), *(one for name, each in known.items() for one in _of(name, each, own))]
    notes = {name: each.heard.note for name, each in known.items() if each.heard and each.heard.note}
    twice = doubled({own["gateway"]: own, **notes})
    concerns += [
        Concern("trouble", f"bridge {lease}", f"{' and '.join(names)} both forward")
        for lease, names in twice.items() if lease in both
    ]  # fmt: skip
    rows = [_row(name, address, own, known.get(name)) for name, address in addresses.items()]
    more = {"more_gateways": max(0, len(rows) - LISTED)}
    return verdict(concerns).as_record() | {"gateways": rows[:LISTED]} | more


def doubled(notes: Mapping[str, Note]) -> dict[str, list[str]]:
    """Return the leases that several gateways say to hold, with their names."""
    held = defaultdict[str, list[str]](list)
    for name, note in notes.items():
        for lease in {one["lease"] for one in note["roles"] if one["role"] in HOLDS and "lease" in one}:
            held[lease].append(name)
    return {lease: names for lease, names in held.items() if len(names) > 1}


def _of_own(own: Note) -> Iterator[Concern]:
    yield from _of_health(own["gateway"], own)


def _of_health(name: str, note: Note) -> Iterator[Concern]:
    health = note.get("health", {"word": "ok"})
    if health["word"] in WORDS and health["word"] != "ok":
        word = cast(Word, health["word"])
        yield Concern(word, name, _MORE.sub("", health["line"].removeprefix(f"{word}: ")))


def _of(name: str, seen: Seen, own: Note) -> Iterator[Concern]:
    """Yield what is wrong with another gateway. One of which nothing is known is no reason."""
    heard = seen.heard
    if heard is None:
        if seen.was_there and not seen.claims:
            yield Concern("trouble", name, "silent: no process answers")
        return
    if heard.note is None:
        why = heard.why and f"does not answer: {heard.why}"
        yield Concern("degraded" if seen.claims else "trouble", name, _silence(heard) or why)
        return
    yield from _of_health(name, heard.note)
    yield from _differing(name, heard, heard.note, own)


def _silence(heard: GatewayAnswer) -> str:
    """Return since when an announcing gateway was not heard, and why it does not answer, if it was asked."""
    return heard.since and f"not heard since {heard.since}{heard.why and f'; {heard.why}'}"


def _differing(name: str, heard: GatewayAnswer, note: Note, own: Note) -> Iterator[Concern]:
    if note["topology"] != own["topology"]:
        yield Concern("trouble", name, f"runs another topology: {note['topology']}")
    elif is_other_file(note, own):
        files = f"{note['file'][:8]} there, {own['file'][:8]} on {own['gateway']}"
        yield Concern("degraded", name, f"runs another file of this topology: {files}: {_SAME}")
    if abs(heard.ahead_ms) - heard.took_ms > CLOCK_MS:
        way = "ahead of" if heard.ahead_ms > 0 else "behind"
        text = f"its clock is {span(abs(heard.ahead_ms) / 1000)} {way} that of {own['gateway']}"
        yield Concern("degraded", name, text)


def is_other_file(note: Note, own: Note) -> bool:
    """Tell whether a gateway runs another file than this one. An older version says no hash."""
    return bool(note["file"] and own["file"] and note["file"] != own["file"])


def _row(name: str, address: str, own: Note, seen: Seen | None) -> dict[str, Any]:
    """Return the row of a gateway: `seen` is None for this one."""
    heard = GatewayAnswer(name, own) if seen is None else seen.heard
    note = None if heard is None else heard.note
    found: dict[str, Any] = {"name": name, "address": address, "here": seen is None}
    if heard is None or note is None:
        return found | _unseen(seen or Seen(), heard)
    health = note.get("health", {"word": "", "line": ""})
    return found | {
        "state": "answers", "word": health["word"], "line": health["line"], "product": note["product"],
        "file": note["file"], "other_file": is_other_file(note, own), "started_ns": note["started_ns"],
        "time_ns": note["time_ns"], "ahead_ms": heard.ahead_ms, "page": note["page"],
        "roles": [dict(role) for role in note["roles"]],
    }  # fmt: skip


def _unseen(seen: Seen, heard: GatewayAnswer | None) -> dict[str, Any]:
    why = "silent: no process answers" if seen.was_there else _UNKNOWN
    if heard is not None:
        why = _silence(heard) or heard.why
    if seen.claims:
        return {"state": "claims", "word": "", "line": f"a broker hears its claims; {why}"}
    return {"state": "silent" if heard is not None or seen.was_there else "unknown", "word": "", "line": why}
