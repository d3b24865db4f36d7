"""Protocols of endpoints: `NAME:TARGET?protocol=NAME&KEY=VALUE`, where the keys are those of the protocol."""

import sys
from typing import Any, get_args, get_origin
from urllib.parse import urlencode

from appliance.probe.media import Form, medium_of, pairs_of, value_of
from bridges.media.medium import Medium
from bridges.protocols import PROTOCOLS
from bridges.protocols.protocol import Protocol
from bus import extras
from bus.errors import LinkError
from bus.schema import Record, Setting, settings, unwrap
from bus.text import nearest, plain

_KEY = "protocol"


def spoken_of(word: str, form: Form, rest: str) -> tuple[Medium, Protocol | None]:
    """Return the medium that a word describes, and the protocol of its devices; None for TMQ.

    Raises `LinkError` that says which part of the word is wrong.
    """
    target, _, query = rest.partition("?")
    pairs = pairs_of(word, query)
    name = dict(pairs).get(_KEY)
    if name is None:
        return _fit(word, medium_of(word, form, rest), False), None
    kind = _kind(word, name, form)
    own = {key for key in settings(kind) if key not in form.settings()}
    left = [(key, value) for key, value in pairs if key != _KEY and key not in own]
    medium = medium_of(word, form._replace(spoken=True), f"{target}?{urlencode(left)}" if left else target)
    made = _made(word, kind, [(key, value) for key, value in pairs if key in own])
    return _fit(word, medium, bool(made.items)), made if made.items else None


def _fit(word: str, medium: Medium, spoken: bool) -> Medium:
    if unfit := medium.unfit(spoken):
        raise LinkError(f"{word}: {unfit}")
    return medium


def _kind(word: str, name: str, form: Form) -> type[Protocol]:
    """Return the record of a protocol that the medium carries."""
    try:
        kind = PROTOCOLS.find(name)
    except ValueError as error:
        raise LinkError(f"{word}: {error}") from error
    fit = [key for key in PROTOCOLS.ours() if _fits(PROTOCOLS.find(key), form.record)]
    if kind is None:
        raise LinkError(
            f"{word}: protocol {name!r} is not known{nearest(name, fit) or f': {chr(44).join(fit)}'}"
        )
    if not _fits(kind, form.record):
        raise LinkError(f"{word}: {form.record.key} does not carry the protocol {name}")
    return kind


def _fits(kind: type[Protocol] | None, record: type[Medium]) -> bool:
    return kind is not None and (not kind.items or bool(set(kind.items) & set(record.items)))


def _is_table(one: Setting) -> bool:
    """Return whether a setting is a list of records, which no word can hold."""
    bare = unwrap(one.annotation)[0]
    item = unwrap(get_args(bare)[0])[0] if get_origin(bare) is tuple else None
    return isinstance(item, type) and issubclass(item, Record)


def _made(word: str, kind: type[Protocol], pairs: list[tuple[str, str]]) -> Protocol:
    known, values = settings(kind), dict[str, Any]()
    table = next((key for key, one in known.items() if one.required and _is_table(one)), None)
    if table is not None:
        raise LinkError(f"{word}: {kind.key} needs {table}, a table: write it into a topology, and run that")
    for key, text in pairs:
        if known[key].field.name in values:
            raise LinkError(f"{word}: {key} is given twice")
        values[known[key].field.name] = value_of(word, key, text, known[key])
    missing = [key for key, one in known.items() if one.required and one.field.name not in values]
    if missing:
        raise LinkError(f"{word}: {missing[0]} is missing: add &{missing[0]}=..., {known[missing[0]].doc}")
    try:
        made = kind(**values)
    except ValueError as error:
        raise LinkError(f"{word}: {error}") from error
    extras.check(word, made.needs())
    for problem in made.problems():
        if problem.is_error:
            raise LinkError(f"{word}: {problem}")
        if not problem.is_note:
            print(plain(f"{word}: {problem}"), file=sys.stderr)
    return made
