"""PEM (RFC 7468): whether a file of certificates or keys was written to its end. Pure."""

import re
from typing import Final

CERTIFICATE: Final = "CERTIFICATE"
KEY: Final = "PRIVATE KEY"
_AGAIN: Final = "write it anew"
_BEGIN: Final = b"-----BEGIN "
_EDGE: Final = re.compile(rb"-----(BEGIN|END) ([A-Z0-9 ]+)-----")


def fault(data: bytes, holds: str) -> str:
    """Return why a file does not hold, whole, something of a kind, such as `KEY`, and what to do; "" if it
    does."""
    if not data.strip(b"\0 \t\r\n"):
        return f"is empty: {_AGAIN}"
    begun, kinds = None, set[str]()
    for edge in _EDGE.finditer(data):
        if begun is None and data[max(0, edge.start() - 1) : edge.start()] not in (b"", b"\n"):
            continue  # in a note, which may say anything
        if begun is not None and edge[1] == b"BEGIN":
            break
        begun = edge if edge[1] == b"BEGIN" else None
        kinds.add(edge[2].decode())
    if begun is not None:
        line = data.count(b"\n", 0, begun.start()) + 1
        what = KEY if begun[2].endswith(KEY.encode()) else begun[2].decode()
        return f"is cut off: the {what.lower()} that begins in line {line} does not end: {_AGAIN}"
    if (last := data.rsplit(b"\n", 1)[-1]) and _BEGIN.startswith(last[: len(_BEGIN)]):
        line = data.count(b"\n") + 1
        return f"is cut off in line {line}: {_AGAIN}"
    has = any(kind.endswith(holds) for kind in kinds)
    return "" if has else f"holds no {holds.lower()} in PEM: name another"
