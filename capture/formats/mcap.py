"""MCAP, as Foxglove and PlotJuggler open it: a channel for each pattern, and for each CAN identifier.

Source: the specification at mcap.dev, and the package `mcap`, which writes the file with its indexes.
Messages are JSON, with schemas. Reading needs no package, and unpacks chunks in pieces. Needs numpy and
pyarrow.
"""

import base64
import io
import json
import re
from collections.abc import Iterable, Iterator
from math import inf
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from bus.wire.envelope import take_apart
from bus.wire.frame import is_frame, unpack
from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE, identifier_word
from capture.files import CaptureError
from capture.formats.columns import Builder
from capture.formats.source import LeftOut, Source, up_to_damage
from capture.frames import CLASSIC_DATA, FD_FLAGS, Frames
from capture.pcapng import Packet
from capture.schema import Kind

if TYPE_CHECKING:
    from bus.names import Names

MAGIC: Final = b"\x89MCAP0\r\n"
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 3, 4, 5, 6, 15
_HEAD: Final = Struct("<BQ")
_MESSAGE_HEAD: Final = Struct("<HIQQ")
_CHUNK_HEAD: Final = Struct("<QQQI")
_RECORD_BYTES_MAX: Final = 1 << 26
_FRAMES: Final = 1 << 14
_CHANNELS_MAX: Final = 1 << 16
_OWN_TOPICS_MAX: Final = _CHANNELS_MAX - 3
"""The topics of their own that a file has: numbers of channels are u16 from 1, and two are for the rest."""
_NUMERAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_LARGEST: Final = (1 << 63) - 1
FRAME, VALUE = "buscoupler.CanFrame", "buscoupler.Value"
_NUMBER, _FLAG, _BYTES = (
    {"type": "integer"},
    {"type": "boolean"},
    {"type": "string", "contentEncoding": "base64"},
)
_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    FRAME: {
        "channel": {"type": "string"}, "id": _NUMBER, "extended": _FLAG, "remote": _FLAG, "error": _FLAG,
        "fd": _FLAG, "marks": _NUMBER, "length": _NUMBER, "sent": _FLAG, "data": _BYTES,
    },
    VALUE: {
        "value": {"type": "number"}, "text": {"type": "string"}, "gateway": {"type": "string"},
        "hub": {"type": "string"}, "bus": {"type": "string"}, "peer": {"type": "string"}, "dir": _NUMBER,
        "verdict": _NUMBER, "boot": _NUMBER, "cap_seq": _NUMBER, "message": _BYTES,
    },
}  # fmt: skip
_OTHERS: Final = "messages of other schemas than ours"
_DAMAGED: Final = "rest behind a damaged record"


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames | list[Packet]]:
    """Read CAN frames and rows of captures of ours. Raises `CaptureError` if the file is no MCAP."""
    if not source.head.startswith(MAGIC):
        raise CaptureError(f"{source.path}: not an MCAP file")
    reader = _Reader(source.told)
    for op, body in _records(_Stream(source), source.told):
        if op == _DATA_END:
            break
        reader.take(op, body)
        yield from reader.ready(_FRAMES)
    yield from reader.ready(1)


class _Stream:
    """The bytes of a file behind its magic, `size` at a time."""

    def __init__(self, source: Source) -> None:
        self._source, self._held, self._at = source, source.read(), len(MAGIC)

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer at the end."""
        while len(self._held) - self._at < size and (piece := self._source.read()):
            self._held, self._at = self._held[self._at :] + piece, 0
        found = self._held[self._at : self._at + size]
        self._at += len(found)
        return found


def _records(stream: _Stream, told: LeftOut) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a file, and of a last chunk that is cut off those that are whole."""
    while len(head := stream.take(_HEAD.size)) == _HEAD.size:
        op, size = _HEAD.unpack(head)
        if size > _RECORD_BYTES_MAX:
            told.leave(_DAMAGED)
            return
        body = stream.take(size)
        if len(body) < size:
            told.leave("record at the end that is cut off")
            if op == _CHUNK:
                yield from _in_chunk(body, LeftOut())
            return
        yield op, body
    told.leave("record at the end that is cut off", int(bool(head)))


class _Reader:
    """The reader of the records of a file."""

    def __init__(self, told: LeftOut) -> None:
        self._told, self._built, self._rows = told, Builder(), list[Packet]()
        self._schemas: dict[int, str] = {}
        self._channels: dict[int, str] = {}

    def ready(self, least: int) -> Iterator[Frames | list[Packet]]:
        """Yield what has come, if there are so many."""
        if len(self._built) >= least:
            yield self._built.take()
        if len(self._rows) >= least:
            rows, self._rows = self._rows, []
            yield rows

    def take(self, op: int, body: bytes) -> None:
        """Take a record; one that is damaged is counted."""
        try:
            if op == _CHUNK:
                for inner, part in _in_chunk(body, self._told):
                    self._one(inner, part)
            else:
                self._one(op, body)
        except (StructError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            self._told.leave("damaged records")

    def _one(self, op: int, body: bytes) -> None:
        if op == _SCHEMA and len(self._schemas) < _CHANNELS_MAX:
            size = int.from_bytes(body[2:6], "little")
            self._schemas[int.from_bytes(body[:2], "little")] = body[6 : 6 + size].decode()
        elif op == _CHANNEL and len(self._channels) < _CHANNELS_MAX:
            number, schema = int.from_bytes(body[:2], "little"), int.from_bytes(body[2:4], "little")
            self._channels[number] = self._schemas.get(schema, "")
        elif op == _MESSAGE:
            number, _, ts_ns, _ = _MESSAGE_HEAD.unpack_from(body)
            take = {FRAME: self._frame, VALUE: self._row}.get(self._channels.get(number, ""))
            known = take is not None and take(ts_ns, json.loads(body[_MESSAGE_HEAD.size :]))
            self._told.leave(_OTHERS, int(not known))

    def _frame(self, ts_ns: int, said: dict[str, Any]) -> bool:
        number = said["id"] & IDENTIFIER
        for name, bit in (("extended", EXTENDED), ("remote", REMOTE), ("error", ERROR)):
            number |= bit if said[name] else 0
        is_fd, size, data = bool(said["fd"]), int(said["length"]), base64.b64decode(said["data"])
        marks = int(said["marks"]) & FD_FLAGS if is_fd or size == CLASSIC_DATA else 0
        name = _word(said["channel"])
        return self._built.add(ts_ns, name, bool(said["sent"]), number, size, marks, is_fd, data)

    def _row(self, ts_ns: int, said: dict[str, Any]) -> bool:
        gateway, hub, bus, peer = (_word(said[name]) for name in ("gateway", "hub", "bus", "peer"))
        way, verdict = (int(said[name]) & 0xFF for name in ("dir", "verdict"))
        when_ns, boot, number = (int(one) & _LARGEST for one in (ts_ns, said["boot"], said["cap_seq"]))
        message = base64.b64decode(said["message"])
        kind = int(Kind.FRAME)
        row = Packet(when_ns, gateway, hub, bus, peer, way, kind, verdict, boot, number, 1, message)
        self._rows.append(row)
        return True


def _word(value: Any) -> str:
    """Return a name of JSON as UTF-8 can have it, without halves of surrogate pairs."""
    return str(value)[:255].encode(errors="replace").decode()


def _in_chunk(body: bytes, told: LeftOut) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a chunk."""
    at = _CHUNK_HEAD.size
    size = int.from_bytes(body[at : at + 4], "little")
    packing = body[at + 4 : at + 4 + size].decode(errors="replace")
    data = body[at + 4 + size + 8 :]
    rest = b""
    for piece in _unpacked(data, packing, told):
        rest += piece
        at = 0
        while at + _HEAD.size <= len(rest):
            op, length = _HEAD.unpack_from(rest, at)
            if length > _RECORD_BYTES_MAX:
                told.leave(_DAMAGED)
                return
            if at + _HEAD.size + length > len(rest):
                break
            yield op, rest[at + _HEAD.size : at + _HEAD.size + length]
            at += _HEAD.size + length
        rest = rest[at:]
    told.leave("damaged records", int(bool(rest)))


def _unpacked(data: bytes, packing: str, told: LeftOut) -> Iterator[bytes]:
    import pyarrow as pa

    if not packing:
        yield data
    elif packing in ("zstd", "lz4"):
        stream = pa.CompressedInputStream(pa.BufferReader(data), packing)
        try:
            yield from up_to_damage(stream)
        except (OSError, pa.ArrowException):
            told.leave("damaged records")
    else:
        told.leave("chunks that are packed in an unknown way")


class Writer:
    """A writer of MCAP, packed by zstd."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        from mcap.writer import Writer as McapWriter

        self._file = io.BufferedWriter(_Unclosed(file))
        self._writer = McapWriter(self._file)
        self._writer.start(profile="", library="buscoupler")
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        self._count = 0

    def _channel(self, topic: str, schema: str) -> int:
        if topic not in self._channels and len(self._channels) >= _OWN_TOPICS_MAX:
            topic = f"/more {schema}"
        if topic not in self._channels:
            if schema not in self._schemas:
                text = json.dumps({"type": "object", "properties": _SCHEMAS[schema]}).encode()
                self._schemas[schema] = self._writer.register_schema(schema, "jsonschema", text)
            self._channels[topic] = self._writer.register_channel(topic, "json", self._schemas[schema])
        return self._channels[topic]

    def _write(self, topic: str, schema: str, ts_ns: int, said: dict[str, Any]) -> None:
        data, self._count = json.dumps(said).encode(), self._count + 1
        self._writer.add_message(self._channel(topic, schema), ts_ns, data, ts_ns, self._count & 0xFFFFFFFF)

    def add(self, frames: Frames) -> None:
        """Write frames, each on the channel of its bus and identifier."""
        columns = zip(*(column.tolist() for column in frames.columns[:-1]), strict=True)
        for (ts_ns, channel, is_sent, number, size, marks, is_fd), data in zip(
            columns, frames.data, strict=True
        ):
            name = frames.names[channel]
            said = {
                "channel": name, "id": number & IDENTIFIER, "extended": bool(number & EXTENDED),
                "remote": bool(number & REMOTE), "error": bool(number & ERROR), "fd": is_fd, "marks": marks,
                "length": size, "sent": is_sent, "data": _text(data.tobytes()[:size]),
            }  # fmt: skip
            self._write(f"/{name}/{identifier_word(number)}", FRAME, ts_ns, said)

    def add_rows(self, rows: Iterable[Packet], names: "Names") -> int:
        """Write messages of buses, each on the channel of its pattern. Return their number."""
        count = 0
        for row in rows:
            count += 1
            content = bytes(take_apart(row.message).content)
            topic, said = "/opaque", dict[str, Any]()
            if is_frame(content):
                frame = unpack(content)
                topic, said = f"/{names.show(frame.tokens).strip('/')}", value_of(frame.data)
            places = row._asdict()
            said |= {name: places[name] for name in _SCHEMAS[VALUE] if name in places}
            self._write(topic, VALUE, row.ts_ns, said | {"message": _text(row.message)})
        return count

    def close(self) -> None:
        """Write the summary."""
        self._writer.finish()
        self._file.flush()


class _Unclosed(io.RawIOBase):
    """A file that its writer may not close."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._size = file, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        self._size += self._file.write(data)
        return len(data)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def value_of(data: bytes) -> dict[str, Any]:
    """Return the number or the text that data are, as far as that can be told: a number is one for `signals`
    too."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {}
    number = float(bare) if _NUMERAL.fullmatch(bare := text.strip(" \t\r\n\0")) else inf
    if number - number == 0:
        return {"value": number}
    return {"text": text} if text and text.isprintable() else {}
