"""The words for what input looks like that nobody understands. Pure."""

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bridges.items import Items
    from bridges.media.guess import Guess

_SURE: Final = 0.5


def likeness(sample: bytes, spoken: str = "tmq", is_line: bool = True) -> str:
    """Return what input looks like, with the setting for it; "" if that is unknown, or what is `spoken`.

    Settings of a serial line are advised only where there is one (`is_line`).
    """
    return _words(sample, spoken, is_line, "bytes")


def likeness_of_datagram(datagram: bytes, spoken: str = "tmq") -> str:
    """Return what `likeness` does, for a datagram, which ends its last line: protocols of datagrams alone."""
    return _words(b"\n" + datagram.rstrip(b"\r\n") + b"\n\n", spoken, False, "datagrams")


def _words(sample: bytes, spoken: str, is_line: bool, items: "Items") -> str:
    from bridges.media.guess import of_bytes  # late: most gateways never have such input

    found = of_bytes([sample])
    if found.protocol == "" or found.share < _SURE or (found.line and not is_line):
        return ""
    if not _carried(found.protocol, items):
        return ""
    if found.protocol == "tmq" != spoken:
        return f"{found.words}: leave `protocol` out"
    fitting = [f"{key}: {value}" for key, value in found.line.items()]
    fitting += [f"protocol: {_protocol(found)}"] if found.protocol != spoken else []
    return f"{found.words}: `{', '.join(fitting)}`" if fitting else ""


def _carried(protocol: str, items: "Items") -> bool:
    """Return whether a protocol reads such items. One of another distribution may do so."""
    from bridges.protocols import PROTOCOLS

    kind = PROTOCOLS.find(protocol) if protocol in PROTOCOLS.ours() else None
    return kind is None or not kind.items or items in kind.items


def _protocol(found: "Guess") -> str:
    """Return a protocol as files have it, with the settings that the input needs."""
    settings = ", ".join(f"{key}: {json.dumps(value)}" for key, value in found.settings.items())
    return f"{{{found.protocol}: {{{settings}}}}}" if settings else found.protocol
