# ruff: noqa: SLF001 - the TMQ client in Python without sockets
"""One set of vectors: for the gateway, the node in Python, also shrunk for a board, and the node in C."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bridges.media.can.codec import Reassembler, can_id, segment
from bridges.media.tcp.frames import cut
from bridges.media.uart.codec import Decoder, encode
from bus.embedded import buscoupler_asking, tokens
from bus.embedded import buscoupler_node as node_module
from bus.embedded.buscoupler_node import bare
from bus.embedded.buscoupler_tmq import Caller, Tmq
from bus.tmq import wire
from bus.wire.batch import payloads
from bus.wire.frame import pack, unpack
from bus.wire.pattern import token
from tests.bus.embedded.cnode_support import CanBoard, PairBoard, TcpBoard, UartBoard, build
from tests.bus.embedded.support import Line, small_node
from tests.bus.embedded.tmq_cnode import Client
from tests.helpers.ports import free_port

VECTORS = json.loads(Path(tokens.__file__).with_name("vectors.json").read_text())
FRAMES = [vector for vector in VECTORS if "names" in vector]
SAID = [vector for vector in VECTORS if "says" in vector]
HEARD = [vector for vector in VECTORS if "hears" in vector]
WATCHES = [vector for vector in VECTORS if "watches" in vector]
VERDICTS = [vector for vector in VECTORS if "verdict" in vector]
SMALL: Any = small_node(["uart"])
Frame = tuple[tuple[int, ...], bytes]
Clients = tuple[Client, Any]


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


def pair_of_clients(c: Any, limit: int) -> Clients:
    """Return a client of TMQ brokers in C, which a broker has greeted, and one in Python."""
    made, python = Client(c, ("10.0.0.1", 9942), packet=limit), Tmq([], "127.0.0.1", free_port(), limit=limit)
    made.tick()
    made.connect(next(iter(made.dialled)))
    made.feed(next(iter(made.dialled)), wire.pack_hello(wire.Hello(7, 3000)))
    return made, python


@pytest.fixture
def clients(c: Any) -> Iterator[Clients]:
    """Both clients, with room for long packets."""
    made, python = pair_of_clients(c, 600)
    yield made, python
    python.close()


@pytest.mark.parametrize("vector", SAID, ids=lambda vector: str(vector["what"]))
def test_all_say_the_same_to_brokers_and_subscribers(
    clients: Clients, vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_c, python = clients
    names, packet = tuple(map(token, vector["pattern"])), bytes.fromhex(vector["tmq"])
    python.own = bytes.fromhex(vector["own"])
    python.brokers, python.turns, python.at, calls = [("", 0)], [0], 0, list[bytes]()

    def call(sock: socket.socket, *rest: Any) -> None:
        sock.close()
        calls.append(bytes(rest[-1]))

    monkeypatch.setattr(python, "_call", call)
    head = node_module.key(tuple(vector["pattern"]))
    if vector["says"] == "message":
        subscriber = wire.pack_address(("10.0.0.3", 9943))
        in_c.declare(*names)
        link = next(iter(in_c.dialled))
        in_c.feed(link, pack(wire.ADD, names, subscriber))
        in_c.publish(names, wire.data_of(packet))
        said = in_c.connect(next(at for at, to in in_c.dialled.items() if to == subscriber))
        python.subscribers, python.at = [(head, subscriber)], 1
        python.send(pack(1, names, wire.data_of(packet)))
    else:
        link = next(iter(in_c.dialled))
        in_c.said[link] = b""
        assert getattr(in_c, vector["says"])(*names) == 0
        in_c.tick()
        said = in_c.said[link]
        python.register(wire.SUBSCRIBE if vector["says"] == "subscribe" else wire.PUBLISH, head)
        python._tell()
    assert said == packet
    assert calls == [packet]


@pytest.mark.parametrize("vector", HEARD, ids=lambda vector: str(vector["what"]))
def test_all_hear_the_same_of_a_broker(c: Any, vector: dict[str, Any]) -> None:
    in_c, python = pair_of_clients(c, vector.get("limit", 600))
    names = tuple(map(token, vector["pattern"]))
    in_c.declare(*names)
    python.register(wire.PUBLISH, node_module.key(tuple(vector["pattern"])))
    with closing(python):
        for packet in map(bytes.fromhex, filter(None, (vector.get("before"), vector["tmq"]))):
            for at in range(0, len(packet), 5):
                in_c.feed(next(iter(in_c.dialled)), packet[at : at + 5])
            _hear(python, packet)
    found = {bytes.fromhex(address) for address in vector["hears"]}
    assert in_c.subscribers() == {address for _, address in python.subscribers} == found
    assert in_c.node.node.rejected == python.rejected == vector.get("rejected", 0)
    assert in_c.node.oversize == python.oversize == 0


def _hear(python: Any, packet: bytes) -> None:
    """Let the client in Python have a packet on a connection of its own, in pieces."""
    ours, theirs = socket.socketpair()
    with theirs:
        python.callers.append(Caller(ours))
        for at in range(0, len(packet), 5):
            if python.callers:  # it closes the connection when it has its verdict
                theirs.send(packet[at : at + 5])
                python.step()


@pytest.mark.parametrize("vector", WATCHES, ids=lambda vector: str(vector["what"]))
def test_both_nodes_watch_their_gateway_alike(
    c: Any, vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    line, now_ms = Line(), 0
    monkeypatch.setattr(buscoupler_asking, "ticks_ms", lambda: now_ms)
    watching = buscoupler_asking.Watch(
        node_module.Node(node_module.Rs485(line, vector["node"])), vector["silence_ms"]
    )
    board = PairBoard(c, vector["node"])
    shared, watch = board.ffi.addressof(board.shared), board.ffi.new("struct bcn_watch *")
    board.library.bcn_watch_init(watch, shared, now_ms)
    for ms, heard, result in vector["watches"]:
        now_ms += ms
        line.hears = bytes.fromhex(heard)
        board.feed(line.hears, now_ms)
        board.step(now_ms + 1)
        states = [watching.poll() for _ in range(3)]
        assert (states[-1], board.library.bcn_watch(watch, shared, now_ms, vector["silence_ms"])) == (
            result,
            result,
        )
