"""Media as words of the command line: `NAME:TARGET?KEY=VALUE&...`. The keys are the fields of a record."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Any, NamedTuple, get_args, get_origin
from urllib.parse import parse_qsl

from bridges.media import MEDIA
from bridges.media.medium import Medium, Word
from bus.errors import LinkError, TokenError
from bus.schema import Notation, Record, Ref, Setting, Signs, members, present, settings, unwrap
from bus.text import closest, signs_in, whole_in
from bus.wire.notation import names_in

Reader = Callable[[str], Any]


def switch(text: str) -> bool:
    """Parse true, yes, 1, false, no or 0. Raises `ValueError`."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise ValueError
    return words[text.lower()]


def whole(text: str) -> int:
    """Parse a whole number: decimal, or with 0x, 0o or 0b. Raises `ValueError`."""
    return int(text, 0)


def wholes(text: str) -> tuple[int, ...]:
    """Parse whole numbers between commas. Raises `ValueError`."""
    return tuple(whole(part) for part in text.split(","))


def addresses(text: str) -> tuple[str, ...]:
    """Parse addresses between commas: each a URL, or HOST:PORT for TCP."""
    return tuple(part if "://" in part else f"tcp://{part}" for part in text.split(","))


def names(text: str) -> tuple[str, ...]:
    """Parse names between commas."""
    return tuple(filter(None, text.split(",")))


def patterns(text: str) -> tuple[tuple[int | str, ...], ...]:
    """Parse patterns between commas."""
    return tuple(tuple(names_in(part)) for part in text.split(","))


_READERS: dict[Any, tuple[Reader, str]] = {
    bool: (switch, "true or false"),
    int: (whole, "a whole number"),
    float: (float, "a number"),
}
_LISTS: dict[Any, tuple[Reader, str]] = {
    int: (wholes, "whole numbers with commas"),
    str: (addresses, "HOST:PORT, several with commas"),
    tuple: (patterns, "patterns with commas"),
}


def _bare(annotation: Any) -> Any:
    return unwrap(present(annotation))[0]


def _reader(annotation: Any) -> tuple[Reader, str]:
    """Return the reader of values of a type, and the words for its values. Where a file may name parts of the
    topology, a list of text is one of addresses."""
    annotation = _one_text(annotation)
    bare = _bare(annotation)
    for one in unwrap(present(annotation))[1]:
        if isinstance(one, Notation):
            return one.function, one.words
        if isinstance(one, Signs):
            return signs_in, "text"
    if get_origin(bare) is not tuple:
        return _READERS.get(bare, (str, "text"))
    item, markers = unwrap(present(get_args(bare)[0]))
    if item is str and not any(isinstance(one, Ref) for one in markers):
        return names, "names with commas"
    return _LISTS[get_origin(item) or item]


def _one_text(annotation: Any) -> Any:
    """Return the type of what may stand in one word where a mapping may stand too, in a file."""
    options = members(unwrap(annotation)[0])
    kinds = [one for one in options if get_origin(unwrap(one)[0]) is not Mapping]
    whole = [one for one in kinds if one is not type(None)]
    return whole[0] if len(whole) == 1 < len(options) else annotation


class Form(NamedTuple):
    """The form of a medium's word: the record of the medium, and the `name` that the word begins with.

    `spoken`: the devices speak a protocol, so that nothing is needed that only TMQ needs.
    """

    word: Word
    record: type[Medium]
    spoken: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """The settings without which TMQ cannot be spoken there; none if the devices speak a protocol."""
        return () if self.spoken else self.word.needed

    @property
    def part(self) -> type | None:
        """The record within the record of the medium whose fields are settings too; None without one."""
        found = settings(self.record).get(self.word.part)
        return _bare(found.annotation) if found else None

    def settings(self) -> dict[str, Setting]:
        """Return the fields that are settings behind the question mark, by key."""
        known = settings(self.record) | (settings(self.part) if self.part else {})
        left_out = {*self.word.target, *self.word.unused, self.others}
        return {
            key: one
            for key, one in known.items()
            if key not in left_out and not is_dataclass(_bare(one.annotation))
        }

    @property
    def others(self) -> str:
        """The field for the keys of a driver behind the medium; "" without one."""
        known = settings(self.record).items()
        return next((key for key, one in known if _is_of_scalars(_bare(one.annotation))), "")


def _is_of_scalars(bare: Any) -> bool:
    """Tell whether a type is a mapping to values that are no records."""
    return get_origin(bare) is Mapping and not is_dataclass(unwrap(get_args(bare)[1])[0])


def forms(keys: Iterable[str]) -> Iterator[Form]:
    """Yield the forms of the media with these keys. Raises `ValueError` for one that cannot be imported."""
    for key in keys:
        if (record := MEDIA.find(key)) is not None:
            yield from (Form(word, record) for word in record.words)


def form_of(name: str) -> Form | None:
    """Return the form of words that begin with `name`: of our media first, then of other distributions."""
    keys = (key for group in (MEDIA.ours, MEDIA.all) for key in group())
    return next((form for form in forms(keys) if form.word.name == name), None)


def medium_of(word: str, form: Form, rest: str) -> Medium:
    """Return the record that a word describes. Raises `LinkError` that says which part of it is wrong."""
    text, _, query = rest.partition("?")
    if not text:
        raise LinkError(f"{word}: what to open is missing after the colon")
    given, options = _split(word, query, form)
    for key, one in form.settings().items():
        if key not in given and (one.required or (key in form.needed and not given.get(form.word.spares))):
            what = one.doc.partition(";")[0]  # after it comes the default in a topology; here there is none
            spares = form.word.spares if key in form.needed else ""
            hint = (
                f", or ?{spares}=true, {settings(form.record)[spares].doc.partition(',')[0]}"
                if spares
                else ""
            )
            raise LinkError(f"{word}: {key} is missing: add ?{key}=..., {what}{hint}")
    values = {**form.word.defaults, **_target(word, text, form), **given}
    if form.others:
        values[form.others] = options
    try:
        return form.record(**_folded(form, values))
    except ValueError as error:
        raise LinkError(f"{word}: {error}") from error


def _folded(form: Form, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values, with the fields of the inner record folded into that record."""
    if form.part is None:
        return values
    inner = {key: values.pop(key) for key in settings(form.part) if key in values}
    return values | {form.word.part: form.part(**inner)}


def _target(word: str, text: str, form: Form) -> dict[str, Any]:
    known = settings(form.record)
    if len(form.word.target) == 1:
        (key,) = form.word.target
        return {key: value_of(word, key, text, known[key])}
    return dict(zip(form.word.target, host_and_port(text), strict=True))


def host_and_port(target: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT` or `[v6]:PORT`. Raises `LinkError`."""
    host, _, port = target.rpartition(":")
    number = whole_in(port, 65535)
    if not host or number is None:
        raise LinkError(f"{target[:64]}: write it as HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), number


def _split(word: str, query: str, form: Form) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split `KEY=VALUE&...` into settings of the medium, and options for the driver behind it."""
    given: dict[str, Any] = {}
    options: dict[str, Any] = {}
    known = form.settings()
    for key, value in pairs_of(word, query):
        if key in given or key in options:
            raise LinkError(f"{word}: {key} is given twice")
        if key in known:
            given[key] = value_of(word, key, value, known[key])
        else:
            _refuse_misspelt(word, key, form)
            options[key] = _guess(value)
    return given, options


def pairs_of(word: str, query: str) -> list[tuple[str, str]]:
    """Return what stands behind the question mark, in order. Raises `LinkError` if it is not KEY=VALUE&..."""
    try:
        return parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise LinkError(f"{word}: after the question mark write KEY=VALUE&KEY=VALUE") from error


def value_of(word: str, key: str, value: str, setting: Setting) -> Any:
    """Return the value of a setting, by the type of its field. Raises `LinkError`."""
    reader, kind = _mapping_reader(word, key, setting) or _reader(setting.annotation)
    try:
        if not value:
            raise ValueError
        return reader(value)
    except TokenError as error:
        raise LinkError(f"{word}: {key}: {error}") from error
    except ValueError as error:
        raise LinkError(f"{word}: {key} must be {kind}, not {value!r}") from error


def _mapping_reader(word: str, key: str, setting: Setting) -> tuple[Reader, str] | None:
    """Return the reader of a mapping as NAME:VALUE,NAME:VALUE; None for other settings.

    Raises `LinkError` where its values are more than one word.
    """
    bare = _bare(setting.annotation)
    if get_origin(bare) is not Mapping:
        return None
    made = unwrap(get_args(bare)[1])[0]
    if not (isinstance(made, type) and issubclass(made, Record) and made.SHORT):
        raise LinkError(f"{word}: {key} is a mapping: write it in a topology")
    field = settings(made)[made.SHORT]
    read = _READERS[int][0] if int in members(unwrap(field.annotation)[0]) else _reader(field.annotation)[0]
    return partial(_pairs_in, read, made), "NAME:VALUE, several with commas"


def _pairs_in(read: Reader, made: type[Record], text: str) -> dict[str, Any]:
    """Parse NAME:VALUE,NAME:VALUE. Raises `ValueError`."""
    parts = [part.rpartition(":") for part in text.split(",")]
    return {name: made(**{made.SHORT: read(value)}) for name, _, value in parts}


def _refuse_misspelt(word: str, key: str, form: Form) -> None:
    """Raise `LinkError` for a key that is nearly one of ours: a driver ignores keys that it does not know."""
    known = form.settings()
    near = closest(key, known, 0.75)
    if near or not form.others:
        hint = f"did you mean {near}?" if near else f"use {', '.join(known)}"
        raise LinkError(f"{word}: unknown setting {key}: {hint}")


def _guess(value: str) -> Any:
    """Return the value of a driver's own key: a number or a switch if it is written like one, else text."""
    for reader in (whole, float):
        try:
            return reader(value)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(value.lower(), value)
