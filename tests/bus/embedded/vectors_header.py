"""The vectors of the node as a header in C, for firmware that runs them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bus.wire.pattern import token

STRUCT = """#include <stdint.h>
struct vector {
    const char *what;
    const uint32_t *tokens;
    const uint8_t *data, *uart, *tcp, *can, *can_fd;
    uint16_t size, uart_size, tcp_size, can_size, can_fd_size;
    uint8_t count, is_frame, frames;
};
"""


def header(vectors: Sequence[Mapping[str, Any]]) -> str:
    """Return the header: arrays, and `all`, the vectors. A CAN frame is its length and its bytes."""
    arrays, rows = list[str](), list[str]()
    for number, vector in enumerate(vectors):
        tokens = [token(name) for name in vector.get("names", ())]
        is_frame = "names" in vector
        parts = {key: bytes.fromhex(vector.get(key, "")) for key in ("data", "uart", "tcp")}
        parts |= {key: _joined(vector.get(key, ())) for key in ("can", "can_fd")}
        arrays.append(_array("uint32_t", f"tokens_{number}", tokens))
        arrays += [_array("uint8_t", f"{key}_{number}", data) for key, data in parts.items()]
        names = ", ".join(f"{key}_{number}" for key in parts)
        sizes = ", ".join(str(len(data)) for data in parts.values())
        frames = int(is_frame or vector["verdict"] == "frame")
        head = f'"{vector["what"]}", tokens_{number}, {names}'
        rows.append(f"{{{head}, {sizes}, {len(tokens)}, {int(is_frame)}, {frames}}}")
    return STRUCT + "\n".join(arrays) + "\nstatic const struct vector all[] = {" + ",\n".join(rows) + "};\n"


def _joined(parts: Iterable[str]) -> bytes:
    return b"".join(bytes((len(part) // 2,)) + bytes.fromhex(part) for part in parts)


def _array(kind: str, name: str, numbers: Iterable[int]) -> str:
    return f"static const {kind} {name}[] = {{{', '.join(f'{number}u' for number in (*numbers, 0))}}};"
