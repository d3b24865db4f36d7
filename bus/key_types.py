"""The types of keys in a configuration file: names, paths, addresses, tokens, patterns, sizes and times."""

import re
from collections.abc import Hashable
from typing import Annotated, Final

from bus.schema import AnyText, Check, Length, Means, Notation, Range, Ref, Single
from bus.text import hidden_in
from bus.urls import (
    check_broker,
    check_dial,
    check_dialled_broker,
    check_host,
    check_listen,
    check_listening_broker,
    check_peer,
)
from bus.wire.envelope import MESSAGE_BYTES_MAX
from bus.wire.frame import TOKENS_MAX
from bus.wire.notation import check_wildcards, names_in
from bus.wire.pattern import Pattern
from bus.wire.websocket.origins import check_origin

TOKEN_MAX: Final = 0xFFFFFFFF
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")


def check_name(name: str) -> None:
    """Raise ValueError, with the reason, unless `name` can be a name in a topology."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f'"{name[:64]}" is no name: up to 63 of A to Z, a to z, 0 to 9, "_", "-" and ".", '
            'not starting with "-" or "."'
        )


def _check_path(path: str) -> None:
    if not path:
        raise ValueError("a path cannot be empty")
    check_signs(path)


def check_signs(text: str) -> None:
    """Raise ValueError if a text has a line break, a control character, or another that is no sign."""
    if found := hidden_in(text):
        raise ValueError(f"the text holds {found}, a line break or another character that cannot be seen")


def _check_token(token: int | str) -> None:
    if isinstance(token, int) and not 0 <= token <= TOKEN_MAX:
        raise ValueError(f"{token} is no token: a number must be 0 to {TOKEN_MAX}")
    if isinstance(token, str):
        _check_token_name(token)


def _check_token_name(name: str) -> None:
    if not name:
        raise ValueError("a token cannot be empty text; / is the pattern that matches all")
    if "/" in name:
        parts = ", ".join(filter(None, name[:64].split("/")))
        raise ValueError(f'"{name[:64]}" is a pattern, and a name is expected here: write [{parts}]')
    check_wildcards([name])


def pattern_in(text: str) -> tuple[int | str, ...]:
    """Return the names of a pattern. Raises ValueError.

    Text without a slash is one name, also if it is digits: YAML has its own quotes.
    """
    if "/" in text:
        return tuple(names_in(text))
    _check_token_name(text)
    return (text,)


def _check_pattern(text: str) -> None:
    pattern_in(text)


def _pattern_of(text: str) -> Hashable:
    return Pattern(*pattern_in(text))


Name = Annotated[str, Check(check_name, "a name")]
Host = Annotated[str, Check(check_host, "an IP address or host name")]
PeerHost = Annotated[str, Check(check_peer, "an IP address or host name")]
Path = Annotated[str, Check(_check_path, "a path")]
AnyUrl = Annotated[str, Check(check_listen, "an address")]
ListenUrl = Annotated[str, Check(check_listen, "an address to listen on")]
DialUrl = Annotated[str, Check(check_dial, "an address to dial")]
BrokerUrl = Annotated[str, Check(check_broker, "an address of a broker")]
BrokerListenUrl = Annotated[str, Check(check_listening_broker, "an address of a broker")]
Origin = Annotated[str, Check(check_origin, "an origin such as https://panel.example")]
Broker = Annotated[str, Ref("broker", ("brokers",), Check(check_dialled_broker, "tcp://HOST:PORT"))]
Gateway = Annotated[str, Ref("gateway", ("gateways",))]
BusName = Annotated[str, Ref("bus", ("buses",))]
TapName = Annotated[str, Ref("bus or bridge", ("buses", "bridges"))]
Token = Annotated[int | str, Check(_check_token, "a name or a number"), AnyText()]
PatternKey = Annotated[str, Check(_check_pattern, "pattern"), Means(_pattern_of), AnyText()]
Names = Annotated[tuple[Token, ...], Length(0, TOKENS_MAX), Notation(pattern_in, "a pattern"), Single()]
Patterns = Annotated[tuple[Names, ...], Length(0, 4096), Single()]
Port = Annotated[int, Range(1, 65535)]
CanNode = Annotated[int, Range(1, 127)]
Milliseconds = Annotated[int, Range(1, 86_400_000)]
Delay = Annotated[float, Range(0.001, 86_400_000)]  # milliseconds, also fractions
Seconds = Annotated[int, Range(1, 86_400)]
Bytes = Annotated[int, Range(1, 1 << 40)]
QueueBytes = Annotated[int, Range(MESSAGE_BYTES_MAX, 1 << 40)]  # the longest frame fits
Scalar = bool | int | float | str
