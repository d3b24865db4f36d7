"""Wireshark itself, as tshark, with our dissector."""

import json
import shutil
import subprocess
from pathlib import Path
from struct import pack as pack_words
from typing import Any

import pytest

from bridges.items import FD
from bridges.media.can.socketcan import pack_frame
from bus.names import RESERVED, Names
from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from bus.wire.sp import HANDSHAKE
from capture.pcapng import DISSECTOR, Packet, Writer

pytestmark = pytest.mark.skipif(not shutil.which("tshark"), reason="Debian package tshark")

FRAME = pack(PUB, (0xA1, 0xB2), b"21.5")
STAMPED = wrap(FRAME, Envelope(0xC0FFEE, 77))
ETHERNET = 1
TWINS = ("axjgjz", "ziieqj")  # one token


def tshark(path: Path, form: str, *words: str) -> str:
    """Return what tshark prints of a capture with our dissector, as `json` or `fields`."""
    command = ["tshark", "-X", f"lua_script:{DISSECTOR}", "-r", str(path), "-T", form, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Lua" not in done.stderr, done.stderr
    return done.stdout


def dissected(path: Path, *words: str) -> list[dict[str, Any]]:
    """Return the layers of each packet, by tshark's names."""
    printed = tshark(path, "json", "--no-duplicate-keys", *words)
    return [packet["_source"]["layers"] for packet in json.loads(printed)]


def row(number: int, message: bytes, kind: int = 0, direction: int = 0) -> Packet:
    return Packet(10**18 + number, "gw", "bus p", "bus p", "peer", direction, kind, 0, 3, number, 1, message)


def test_a_capture_of_ours(tmp_path: Path) -> None:
    path, writer = tmp_path / "c.pcapng", Writer()
    rows = [
        row(0, FRAME),
        row(1, STAMPED, direction=1),
        row(2, b"queue full", kind=1),
        row(3, b""),
        row(4, b"junk"),
        row(5, wrap(b"hello", Envelope(0xC0FFEE, 78))),
        row(6, wrap(b"", Envelope(0xC0FFEE, 79))),
    ]
    path.write_bytes(writer.head() + b"".join(map(writer.blocks, rows)))
    plain, stamped, ledger, empty, junk, opaque, nothing = dissected(path)
    assert plain["buscoupler"]["buscoupler.peer"] == "peer"
    assert plain["frame"]["frame.interface_id_tree"]["frame.interface_name"] == "gw | bus p | bus p"
    assert plain["tmq"]["tmq.token"] == ["0x000000a1", "0x000000b2"]
    assert plain["tmq"]["tmq.text"] == "21.5"
    assert '"tmq.envelope.sequence": "77"' in json.dumps(stamped["tmq"])
    assert ledger["buscoupler"]["buscoupler.reason"] == "queue full"
    assert "tmq.type" not in json.dumps([empty, junk, opaque, nothing])
    assert '"tmq.opaque": "68:65:6c:6c:6f"' in json.dumps(opaque["tmq"])
    assert '"tmq.envelope.sequence": "78"' in json.dumps(opaque["tmq"])
    assert '"tmq.envelope.sequence": "79"' in json.dumps(nothing["tmq"])


def written(path: Path, names: list[str], *tokens: tuple[int, ...]) -> Path:
    """Write a capture with names, and a frame of each of some tuples of tokens."""
    writer = Writer()
    rows = [row(number, pack(PUB, pattern, b"21.5")) for number, pattern in enumerate(tokens)]
    path.write_bytes(writer.head() + writer.names(names, 10**18) + b"".join(map(writer.blocks, rows)))
    return path


def shown(layers: dict[str, Any]) -> str:
    return str(layers["tmq"]["tmq.pattern"])


def test_tokens_are_shown_by_the_names_in_the_capture_and_else_in_hex(tmp_path: Path) -> None:
    names = ["fridge", "témp", "\u6e29\u5ea6", "\U0001f321", "7", "a/b", "a b", *TWINS]
    tokens = [Pattern(name, 0x5BE18FE5) for name in names]
    first, *frames = dissected(written(tmp_path / "c.pcapng", names, *tokens, ()))
    assert "fridge\n" in first["buscoupler"]["buscoupler.names"]
    words = ["fridge", "témp", "\u6e29\u5ea6", "\U0001f321", '"7"', '"a/b"', "a b", *["|".join(TWINS)] * 2]
    assert [shown(layers) for layers in frames] == [*(f"{word}/0x5be18fe5" for word in words), "/"]


IDS = (0x0, 0x181, 0x7FF, 0x800, 0x98FEF100, 0x9FFFFFFF, 0x40000123, 0xC0000001, 0x20000004)
"""Standard, extended and remote identifiers, a number that is none, and one of an error frame."""


def test_identifiers_behind_a_raw_root_are_shown_as_everywhere_else(tmp_path: Path) -> None:
    known = ["car", "my car", "engine", "/0x", "car/0x", "my car/2/0x"]
    roots: tuple[tuple[str | int, ...], ...] = ((), ("car",), ("my car", 2), ("engine",))
    for number, names in enumerate((known[:3] + known[4:], known)):  # without a root for all, and with it
        tokens = [Pattern(*root, one, *more) for root in roots for one in IDS for more in ((), (1,))]
        _, *frames = dissected(written(tmp_path / f"{number}.pcapng", names, *tokens))
        assert list(map(shown, frames)) == [Names(names).show(one) for one in tokens]
    (frame,) = dissected(tmp_path / "0.pcapng", "-Y", 'tmq.can_id == "0x18fef100x" && tmq.name == "car"')[:1]
    assert "0x98fef100" in json.dumps(frame["tmq"])


def test_items_on_wires_are_shown_by_what_they_are(tmp_path: Path) -> None:
    items = {
        "frames": [pack_frame((0x123, b"\x01\x02", 0)), pack_frame((0x98FEF100, bytes(12), FD)), b"short"],
        "bytes": [b"$GPGGA\r\n", b"\0\1", b""],
        "registers": [b"\x48\x00\x19"],
    }
    path, writer = tmp_path / "w.pcapng", Writer()
    rows = [
        row(n, f"{name}:".encode() + one, kind=7)
        for name, some in items.items()
        for n, one in enumerate(some)
    ]
    path.write_bytes(writer.head() + b"".join(map(writer.blocks, rows)))
    assert tshark(path, "fields", "-e", "_ws.col.Info").splitlines() == [
        "frames: 0x123 2 bytes", "frames: 0x18fef100x 12 bytes", "frames: 5 bytes",
        "bytes: 8 bytes", "bytes: 2 bytes", "bytes: 0 bytes", "registers: 3 bytes",
    ]  # fmt: skip


def test_reserved_names_are_built_in(tmp_path: Path) -> None:
    frames = dissected(written(tmp_path / "c.pcapng", [], *(Pattern(name) for name in RESERVED)))
    assert list(map(shown, frames)) == [Names().show(Pattern(name)) for name in RESERVED]


def test_a_file_of_names_is_a_preference(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("# ours\nfridge/temp  # in degrees\n7\n")
    path = written(tmp_path / "c.pcapng", [], Pattern("fridge", "temp", 7))
    (frame,) = dissected(path, "-o", f"tmq.names:{file}")
    assert shown(frame) == "fridge/temp/0x00000007"
    filtered = dissected(path, "-o", f"tmq.names:{file}", "-Y", 'tmq.name == "temp"')
    assert len(filtered) == 1


def pcap(path: Path, protocol: int, payloads: list[bytes]) -> None:
    """Write an Ethernet capture of IPv4 packets from loopback to loopback."""
    blocks = [pack_words("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, ETHERNET)]
    for payload in payloads:
        address = bytes((127, 0, 0, 1))
        ip = pack_words(">BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + 2 * address
        packet = bytes(12) + b"\x08\x00" + ip + payload
        blocks.append(pack_words("<IIII", 0, 0, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(blocks))


def test_multicast_datagrams_by_what_they_look_like(tmp_path: Path) -> None:
    body = FRAME + STAMPED + b"CRC!"
    pcap(tmp_path / "u.pcap", 17, [pack_words(">HHHH", 9943, 9943, 8 + len(body), 0) + body])
    (layers,) = dissected(tmp_path / "u.pcap")
    assert "udp" in layers
    assert json.dumps(layers["tmqmc"]).count('"0x000000b2"') == 2


def test_an_sp_stream_by_its_handshake_also_where_a_message_is_cut(tmp_path: Path) -> None:
    stream = bytes(from_payloads([FRAME, STAMPED]).data)
    segments, sequence = [], 1
    for piece in (HANDSHAKE, stream[:20], stream[20:]):
        segments.append(pack_words(">HHIIBBHHH", 5555, 40000, sequence, 0, 0x50, 0x10, 512, 0, 0) + piece)
        sequence += len(piece)
    pcap(tmp_path / "t.pcap", 6, segments)
    handshake, _, last = dissected(tmp_path / "t.pcap")
    assert "spbus" in handshake
    assert json.dumps(last).count('"tmq.envelope.sequence": "77"') == 1
    assert json.dumps(last["tmq"]).count("0x000000a1") >= 2
