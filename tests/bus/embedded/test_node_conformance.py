"""One set of vectors: for the gateway, the node in Python, also shrunk for a board, and the node in C."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bridges.media.can.codec import Reassembler, can_id, segment
from bridges.media.tcp.frames import cut
from bridges.media.uart.codec import Decoder, encode
from bus.embedded import buscoupler_node as node_module
from bus.embedded import tokens
from bus.embedded.buscoupler_node import bare
from bus.wire.batch import payloads
from bus.wire.frame import pack, unpack
from bus.wire.pattern import token
from tests.bus.embedded.cnode_support import CanBoard, TcpBoard, UartBoard, build
from tests.bus.embedded.support import Line, small_node

VECTORS = json.loads(Path(tokens.__file__).with_name("vectors.json").read_text())
FRAMES = [vector for vector in VECTORS if "names" in vector]
VERDICTS = [vector for vector in VECTORS if "verdict" in vector]
SMALL: Any = small_node(["uart"])
Frame = tuple[tuple[int, ...], bytes]


class Heard(NamedTuple):
    """What a speaker made of bytes: frames, and the verdict on the rest, if it tells one from another."""

    frames: list[Frame]
    verdicts: set[str]


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of the node in C, built here, and its cffi."""
    return build(tmp_path_factory.mktemp("cnode"))


def in_python(module: Any, line: bytes) -> Heard:
    """Let the node in Python hear a line. It counts all that is no message as `rejected`."""
    link = module.Uart(Line(line), limit=3084)
    node, frames = module.Node(link), list[Frame]()
    node.subscribe((), lambda names, data: frames.append((names, bytes(data))))
    for _ in range(2 + len(line)):
        node.poll()
    return Heard(frames, {"rejected"} if link.rejected or node.rejected else set())


def in_c(c: Any, line: bytes) -> Heard:
    """Let the node in C hear a line."""
    board = UartBoard(c)
    board.subscribe([])
    board.feed(line)
    drops = board.drops("cobs", "too_short", "crc", "oversize")
    return Heard(board.frames, {*drops, *(["rejected"] if board.shared.rejected else [])})


def at_the_gateway(line: bytes) -> Heard:
    """Let the gateway's codec hear a line."""
    decoder = Decoder()
    messages = [bare(message) for message in decoder.feed(line)]
    verdicts = {*decoder.rejected, *(["rejected"] if None in messages else [])}
    return Heard([unpack(frame)[1:] for frame in messages if frame is not None], verdicts)


@pytest.mark.parametrize("vector", FRAMES, ids=lambda vector: str(vector["what"]))
def test_all_say_the_same_on_a_serial_line_and_hear_it(c: Any, vector: dict[str, Any]) -> None:
    line, data = bytes.fromhex(vector["uart"]), bytes.fromhex(vector["data"])
    names = [token(name) for name in vector["names"]]
    board = UartBoard(c)
    board.publish(names, data)
    assert encode(pack(1, names, data)) == b"".join(board.sent) == line
    for module in (node_module, SMALL):
        said = Line()
        module.Node(module.Uart(said)).publish(tuple(vector["names"]), data)
        assert said.said == line
    for heard in (at_the_gateway(line), in_python(node_module, line), in_python(SMALL, line), in_c(c, line)):
        assert heard == ([(tuple(names), data)], set())


@pytest.mark.parametrize("vector", FRAMES, ids=lambda vector: str(vector["what"]))
def test_the_gateway_and_the_node_in_c_say_the_same_on_can_and_streams(
    c: Any, vector: dict[str, Any]
) -> None:
    names, data = [token(name) for name in vector["names"]], bytes.fromhex(vector["data"])
    stream = bytes.fromhex(vector["tcp"])
    board = TcpBoard(c)
    board.subscribe([])
    board.publish(names, data)
    assert b"".join(board.sent) == pack(1, names, data) == stream
    batch, _, _ = cut(stream)
    assert batch is not None
    assert [*map(bytes, payloads(batch))] == [stream]
    assert board.feed(stream) == 0
    for key in ("can", "can_fd"):
        _on_can(CanBoard(c, 5, key == "can_fd"), [bytes.fromhex(part) for part in vector[key]], stream)
    assert board.frames == [(tuple(names), data)]


def _on_can(board: CanBoard, parts: list[bytes], frame: bytes) -> None:
    _, names, data = unpack(frame)
    board.subscribe([])
    board.publish(list(names), data)
    assert board.sent == segment(frame, 0, bool(board.fd)) == parts
    gateway = Reassembler()
    assert [gateway.feed(0, can_id(0x1234, 9), part) for part in parts][-1] == frame
    for part in parts:
        board.feed(can_id(0x1234, 9), part, 0)
    assert board.frames == [(names, data)]


@pytest.mark.parametrize("vector", VERDICTS, ids=lambda vector: str(vector["what"]))
def test_all_have_the_same_verdict(c: Any, vector: dict[str, Any]) -> None:
    line = bytes.fromhex(vector["uart"])
    is_frame = vector["verdict"] == "frame"
    heard = at_the_gateway(line)
    assert heard == in_c(c, line)
    assert vector["verdict"] in heard.verdicts or is_frame
    for module in (node_module, SMALL):
        found = in_python(module, line)
        assert (found.frames, bool(found.verdicts)) == (heard.frames, bool(heard.verdicts))
    assert len(heard.frames) == is_frame
