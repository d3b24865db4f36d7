"""The reference page of topology files, generated from the model.

`python -m topologies.writing.reference > docs/topology.md` renews it.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from bus.key_types import Patterns, pattern_in
from bus.kinds import Kinds
from bus.schema import (
    ByGateway,
    Called,
    Check,
    KindOf,
    Length,
    Notation,
    Owned,
    Range,
    Record,
    Ref,
    Setting,
    Single,
    alternatives,
    default_of,
    members,
    settings,
    size,
    unwrap,
)
from bus.wire.notation import text_of
from topologies.model import Topology

PAGE = Path(__file__).parents[2] / "docs" / "topology.md"

INTRODUCTION = """# Topology files

One YAML file describes the whole system; each gateway runs its part:
`buscoupler run plant.yaml --gateway gw-a`. Without `--gateway` a machine runs the gateway that has its host
name, else the only one of the file. `buscoupler check FILE` checks a file, `buscoupler show FILE`
draws it. Commented examples are in `topologies/`. `make generated` writes this page.

Reading is strict: an unknown key is an error, and so is a repeated one, however it is written. Every error
is reported with file, line, column and path. A word that YAML 1.1 reads as another type (`on`, `no`, `1.5`)
needs quotes where text is expected. `<<: *anchor` works. A file has at most 1 MiB and 50,000 values, where an
alias counts as what it stands for.

Editors complete and check a file while you write it, by a JSON Schema of the same keys. `buscoupler schema`
prints it. A YAML language server takes it by the first line of a file: `# yaml-language-server:
$schema=PATH`, where `buscoupler schema --path` prints PATH. The schema is about shape: keys, types, ranges
and choices. Names, addresses and loops are left to `check`. It takes a mapping of two or more keys for values
by gateway; with one gateway, write the value itself.

The media and the kinds of devices of other distributions are not on this page
([add a medium](add-a-medium.md), [add a device](add-a-device.md)).

A value can hold variables of the environment: `${NAME}`, or `${NAME:-DEFAULT}` for one that is not set or is
empty; `$${` stands for `${`. Keys cannot. A variable that is not set and has no default is an error with
file, line and column; `check` notes what each one stands for. A value without quotes is read as if its text
stood there, so `rate: ${RATE}` is a number. Inside `{...}` and `[...]` YAML needs quotes around a variable:
`{baud: "${BAUD:-115200}"}` is a number too, because that is what `baud` expects. A default ends at the first
`}`. A reload reads the variables of the process that runs, so a new value needs a restart.

`check` also finds: loops with a link that is not a trunk; a port, serial device, I2C target or CAN node id
that two things want; addresses of other gateways; gateways on which nothing runs; names used twice; bridges
that cannot reach their bus or broker; several gateways for a bridge without a broker; keys without effect;
CAN without a node id; names with equal tokens; media that cannot carry the promised `rates`; devices that
would hear what they say. `run` refuses what `check` finds, in the same words. `check` warns of segments that
several gateways share without `trunk`: exactly-once delivery cannot be promised there. For a TMQ network,
which cannot be a trunk, that is a note.

`check --here` also looks at the machine on which it runs: packages, device files, interfaces, free ports,
names, certificates and directories that its gateway needs. `--gateway NAME` says which gateway that is; by
default it is that with the name of this host, else those with an address of this machine. It opens no
device, and each fault comes with what to do. What a gateway that runs now holds
itself is a note. `-` stands for standard input.

A pattern matches every frame that starts with it. `fridge/temp/7` and `[fridge, temp, 7]` are the same
pattern, `/` and `[]` match all. Between slashes, as on the command line, a part of digits (or of `0x` and hex
digits) is a token and any other part is a name; in double quotes each part is a name. Only there can a name
hold a slash. Where a list of patterns is expected, as in `allow` and `deny`, each item of a list is a
pattern: `[fridge/temp, pump]` has two, and `[fridge, temp]` has two as well. One pattern of two names is
`fridge/temp` or `[[fridge, temp]]` there. A name of one letter has a small token, that of its character: `a`
is 97. A pattern has at most 255 names. There are no wildcards: `fridge` stands for what MQTT writes
`fridge/#`.

On the wire a token is a number, the hash of its name. `recv`, the jobs on captures and Wireshark show its
name if they know it, else the number in hex. They know the names in the patterns of this file and those of
`names`: `names: [temp, door]` or `names: {file: plant-names.txt}`. Taps write them beside their captures.

Any value of a side may be given by gateway, as `bus: {gw-a: hall-a, gw-b: hall-b}` or
`can: {channel: {gw-a: can0, gw-b: can1}}`. Such a mapping names every gateway on which the bridge runs, and
has no other keys. Where a mapping is expected anyway, as for `can` or `shed`, it is one by gateway if it has
a gateway for a key and none of the keys expected there: a gateway that is named like such a key cannot be
used there. For `options` of CAN, whose keys are free, it is one by gateway if all of its keys are gateways
and all of its values mappings. `tls` of an address of a bus or broker may be given by gateway too: for the
gateway that listens, and each of those that dial it.
"""


def page() -> str:
    """Return the whole page, which ends with a newline."""
    return "\n".join([INTRODUCTION, *(_section(cls, table) for cls, table in _classes(Topology).items())])


Table = Kinds[Any] | None
"""The kinds whose keys a record can have."""


def _classes(
    cls: type[Record], table: Table = None, seen: dict[type[Record], Table] | None = None
) -> dict[type[Record], Table]:
    """Return a record class and all that it refers to, in the order of the file, with its table."""
    seen = {} if seen is None else seen
    choice = alternatives(cls)
    seen[cls] = table = choice[1].kinds if choice else table
    reached = [inner for one in settings(cls).values() for inner in _inner(one.annotation)]
    for inner, inner_table in (*((kind, None) for kind in _kinds(table).values()), *reached):
        if inner not in seen:
            _classes(inner, inner_table, seen)
    return seen


def _kinds(table: Table) -> dict[str, type[Any]]:
    """Return the records of a table by their keys, without those of other distributions."""
    ours = table.ours() if table else ()
    return {key: kind for key in ours if table and (kind := table.find(key))}


def _inner(annotation: Any) -> Iterator[tuple[type[Record], Table]]:
    bare, markers = unwrap(annotation)
    called = next((marker for marker in markers if isinstance(marker, Called)), None)
    if called is not None:
        yield from ((kind, None) for kind in _kinds(called.kinds).values())
    elif isinstance(bare, type) and issubclass(bare, Record):
        yield bare, next((marker.kinds for marker in markers if isinstance(marker, KindOf)), None)
    for argument in get_args(bare) if get_origin(bare) is not Literal else ():
        if argument is not ...:
            yield from _inner(argument)


def _section(cls: type[Record], table: Table) -> str:
    rows = [
        f"| `{key}` | {_words(one.annotation)} | {_default(one)} | {one.doc} |"
        for key, one in sorted(settings(cls).items(), key=lambda item: not item[1].required)
    ]
    kinds = [f"| `{key}` | {_bare_words(kind)} |  | {kind.help} |" for key, kind in _kinds(table).items()]
    rows[1:1] = kinds  # after `bus`, the alternative to them, or `on`
    alone = f"A value alone stands for `{cls.SHORT}`.\n\n" if cls.SHORT else ""
    lines = "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows])
    return f"## {_title(cls)}\n\n{cleandoc(cls.__doc__ or '')}\n\n{alone}{lines}\n"


def _title(cls: type[Record]) -> str:
    return cls.__name__.removesuffix("Spec")


def _default(one: Setting) -> str:
    if one.required:
        return "**required**"
    f, value = one.field, default_of(one)
    if value is None or value in ((), {}, "") or is_dataclass(value):
        return ""
    if _notation(one.annotation):
        return f"`{text_of(value)}`"
    if one.annotation == Patterns:
        return f"`{', '.join(map(text_of, value))}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    if f.name == "subject":
        return f"`{value:#x}`"
    if f.name.endswith("_bytes") and isinstance(value, int) and value % 1024 == 0:
        return f"`{value}` ({size(value)})"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value == "*":  # an alias, for YAML
        return f'`"{value}"`'
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _notation(annotation: Any) -> Notation | None:
    return next((marker for marker in unwrap(annotation)[1] if isinstance(marker, Notation)), None)


def _words(annotation: Any) -> str:
    """Describe a type in the terms of YAML."""
    if annotation == Patterns:
        return "list of patterns"
    bare, markers = unwrap(annotation)
    if notation := _notation(annotation):
        is_pattern = notation.function is pattern_in
        return "pattern" if is_pattern else f"{_bare_words(bare)}; or as one text: {notation.words}"
    for marker in markers:
        if isinstance(marker, Called):
            kinds = _kinds(marker.kinds)
            return " or ".join(f"[`{key}`](#{_title(kind).lower()})" for key, kind in kinds.items())
        if isinstance(marker, Ref):
            article = "an" if marker.what[0] in "aeiou" else "a"
            return f"name of {article} {marker.what}" + (
                f", or `{marker.address.words}`" if marker.address else ""
            )
        if isinstance(marker, Check) and marker.words:
            return marker.words
        if isinstance(marker, Range):
            return f"{_bare_words(bare)}, {marker}"
    single = any(isinstance(m, Single) for m in markers)
    least, most = next(((m.low, m.high) for m in markers if isinstance(m, Length)), (0, 0))
    more = " or more" if least < most else " of them"
    words = _bare_words(bare) + (f", {least}{more}" if least > 1 else "")
    return f"{words}, or one alone" if single else words


def _bare_words(bare: Any) -> str:
    origin = get_origin(bare)
    if isinstance(bare, type) and issubclass(bare, Record):
        return f"[{_title(bare)}](#{_title(bare).lower()})"
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(bare))
    if origin is ByGateway:
        return _words(get_args(bare)[0])
    if origin is Owned:
        return f"{_words(get_args(bare)[0])}, also by gateway"
    if origin is tuple:
        return f"list of {_words(get_args(bare)[0])}"
    if origin is Mapping:
        return f"mapping of {' to '.join(_words(argument) for argument in get_args(bare))}"
    simple = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    return simple.get(bare) or " or ".join(_words(m) for m in members(bare) if m is not type(None))


if __name__ == "__main__":
    sys.stdout.write(page())
