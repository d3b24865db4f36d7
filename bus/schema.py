"""The vocabulary of records that a file configures: annotations that say more about a value than its type.

The loader of topologies reads YAML by them and the reference page is written from them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from bus.transports.urls import check_dial, check_listen
from bus.wire.frame import TOKENS_MAX

TOKEN_MAX = 0xFFFFFFFF
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")


class Where(NamedTuple):
    """A place in a file: line and column from 1 (0 when there is no text behind it), path from the root."""

    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""


class Range(NamedTuple):
    """A number within [low, high]."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.12g} to {self.high:.12g}"


class Length(NamedTuple):
    """A list or a text with so many items or characters."""

    low: int
    high: int


class Check(NamedTuple):
    """A function that raises ValueError, with the reason, for a value that will not do."""

    function: Callable[[Any], None]
    words: str


class Ref(NamedTuple):
    """The name of an entry in another section of the same file, or in one of several: `buses bridges`."""

    section: str


class Single:
    """A list that may be written without its brackets when it has one item."""


def doc(text: str, key: str = "") -> dict[str, str]:
    """Metadata of a field: what it means, and its key in YAML where Python reserves that word."""
    return {"doc": text, "key": key}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Anything in the file; `where` says at which line it stands, and does not count in comparisons."""

    where: Where = field(default=Where(), compare=False, repr=False)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise ValueError(
            f'"{name[:64]}" is no name: up to 63 letters, digits, "_", "-", ".", not starting with "-" or "."'
        )


def _check_host(host: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9._:%-]{1,253}", host):
        raise ValueError(f'"{host[:64]}" is no host: write an IP address or a host name, no port')


def _check_path(path: str) -> None:
    if not path or "\0" in path:
        raise ValueError("a path cannot be empty or hold a zero byte")


def _check_token(token: int | str) -> None:
    if isinstance(token, int) and not 0 <= token <= TOKEN_MAX:
        raise ValueError(f"{token} is no token: a number must be 0 to {TOKEN_MAX}")
    if token == "":
        raise ValueError("a token cannot be empty text")


Name = Annotated[str, Check(_check_name, "a name")]
Host = Annotated[str, Check(_check_host, "an IP address or host name")]
Path = Annotated[str, Check(_check_path, "a path")]
AnyUrl = Annotated[str, Check(check_listen, "an address")]
ListenUrl = Annotated[str, Check(check_listen, "an address to listen on")]
DialUrl = Annotated[str, Check(check_dial, "an address to dial")]
Gateway = Annotated[str, Ref("gateways")]
BusName = Annotated[str, Ref("buses")]
TapName = Annotated[str, Ref("buses bridges")]
Token = Annotated[int | str, Check(_check_token, "a name or a number")]
Names = Annotated[tuple[Token, ...], Length(0, TOKENS_MAX), Single()]
Patterns = Annotated[tuple[Names, ...], Length(0, 4096), Single()]
Port = Annotated[int, Range(1, 65535)]
CanNode = Annotated[int, Range(1, 127)]
Milliseconds = Annotated[int, Range(1, 86_400_000)]
Seconds = Annotated[int, Range(1, 86_400)]
Bytes = Annotated[int, Range(1, 1 << 40)]
QueueBytes = Annotated[int, Range(4096, 1 << 40)]  # the longest frame fits
Scalar = bool | int | float | str
