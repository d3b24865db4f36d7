"""The node in C against the gateway's codecs, its vectors and the bounds of its size."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.uart.codec import Decoder, cobs_encode, encode
from bus.embedded import tokens
from bus.embedded.buscoupler_node import bare
from bus.wire.frame import pack, unpack
from bus.wire.pattern import token

HERE = Path(tokens.__file__).parent
SOURCE = HERE / "c" / "buscoupler_node.c"
VECTORS = json.loads((HERE / "vectors.json").read_text())
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
U32 = st.integers(0, 0xFFFFFFFF) | st.sampled_from((0, 1, 256, 0x01010101))
NAMES = st.lists(U32, max_size=255)
DATA = st.binary(max_size=600) | st.integers(250, 520).map(lambda size: b"x" * size)
FRAMES = st.builds(lambda names, data: pack(1, names, data), st.lists(U32, max_size=4), DATA)
ENVELOPES = st.builds(
    lambda flags, off, frame: (
        bytes((0xE1, flags)) + (0xF000 | len(frame) + off).to_bytes(2, "big") + b"origseqn" + frame
    ),
    st.integers(0, 17),
    st.sampled_from((0, 0, 0, 1)),
    FRAMES,
)
MESSAGES = (FRAMES | ENVELOPES | st.binary(min_size=4, max_size=30)).map(encode)
CUT = st.builds(
    lambda line, at: line[: at % len(line)] + line[at % len(line) + 1 :], MESSAGES, st.integers(0, 4000)
)
LINES = st.lists(MESSAGES | CUT | st.binary(max_size=20) | st.just(b"\0\4abc\0"), max_size=6).map(b"".join)


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of the node, built here, and its cffi."""
    cffi = pytest.importorskip("cffi", reason="cffi is missing: pip install -e .[dev]")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: install gcc")
    made = tmp_path_factory.mktemp("cnode") / "node.so"
    subprocess.run([compiler, *STRICT, "-shared", "-fPIC", "-O1", str(SOURCE), "-o", str(made)], check=True)
    text = SOURCE.with_suffix(".h").read_text()
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.S)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    ffi = cffi.FFI()
    ffi.cdef(text.replace("BCN_SUBSCRIPTIONS", "4"))
    return ffi, ffi.dlopen(str(made))


class Board:
    """A node in C with a buffer of `capacity` bytes, what it sent and the frames that it passed on."""

    def __init__(self, c: Any, capacity: int = 3200) -> None:
        self.ffi, self.library = c
        self.sent = b""
        self.frames: list[tuple[tuple[int, ...], bytes]] = []
        self.node = self.ffi.new("struct bcn_node *")
        self.buffer = self.ffi.new("uint8_t[]", capacity)
        self.kept = [
            self.ffi.callback("bcn_write", self._write),
            self.ffi.callback("bcn_callback", self._frame),
        ]
        self.library.bcn_init(self.node, self.kept[0], self.ffi.NULL, self.buffer, capacity)

    def _write(self, _: Any, data: Any, size: int) -> None:
        self.sent += bytes(self.ffi.buffer(data, size))

    def _frame(self, _: Any, names: Any, count: int, data: Any, size: int) -> None:
        found = tuple(self.library.bcn_token(names, at) for at in range(count))
        self.frames.append((found, bytes(self.ffi.buffer(data, size))))

    def publish(self, names: list[int], data: bytes) -> int:
        return int(self.library.bcn_publish(self.node, names, len(names), data, len(data)))

    def subscribe(self, names: list[int]) -> int:
        self.kept.append(self.ffi.new("uint32_t[]", names))
        return int(
            self.library.bcn_subscribe(self.node, self.kept[-1], len(names), self.kept[1], self.ffi.NULL)
        )

    def feed(self, data: bytes) -> None:
        self.library.bcn_feed(self.node, data, len(data))


@given(NAMES, DATA)
def test_a_frame_is_sent_as_the_gateway_encodes_it(c: Any, names: list[int], data: bytes) -> None:
    board = Board(c)
    assert board.publish(names, data) == 0
    assert board.sent == encode(pack(1, names, data))


@given(LINES, st.integers(1, 50))
def test_every_line_gets_the_gateways_verdict(c: Any, line: bytes, piece: int) -> None:
    board, decoder = Board(c), Decoder()
    assert board.subscribe([]) == 0
    for at in range(0, len(line), piece):
        board.feed(line[at : at + piece])
    messages = [bare(message) for message in decoder.feed(line)]
    assert board.frames == [tuple(unpack(frame)[1:]) for frame in messages if frame is not None]
    node = board.node
    assert node.rejected == messages.count(None)
    found = {"cobs": node.cobs, "short": node.too_short, "crc": node.crc, "oversize": node.oversize}
    assert {reason: count for reason, count in found.items() if count} == decoder.rejected


def test_only_frames_with_the_prefix_are_passed_on(c: Any) -> None:
    board = Board(c)
    assert [board.subscribe([1, 2]), board.subscribe([9])] == [0, 0]
    for names in ([1], [1, 2], [1, 2, 3], [1, 3], [9, 9]):
        board.feed(encode(pack(1, names, b"d")))
    assert [names for names, _ in board.frames] == [(1, 2), (1, 2, 3), (9, 9)]
    assert [board.subscribe([3]) for _ in range(3)] == [0, 0, -1]


def test_what_is_longer_than_the_buffer_is_counted_and_the_next_frame_comes_through(c: Any) -> None:
    board = Board(c, 64)
    board.subscribe([])
    fits, long = pack(1, [5], b"x" * 52), pack(1, [5], b"x" * 53)
    board.feed(encode(long) + encode(fits) + b"\0" + cobs_encode(b"y" * 5000) + encode(fits))
    assert (len(board.frames), board.node.oversize) == (2, 2)
    assert board.publish([1], b"x" * 2049) == -1
    assert board.sent == b""


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["what"]))
def test_the_vectors_hold_for_the_gateway_and_the_node(c: Any, vector: dict[str, Any]) -> None:
    names, data = [token(name) for name in vector["names"]], bytes.fromhex(vector["data"])
    board = Board(c)
    board.subscribe([])
    board.publish(names, data)
    line = bytes.fromhex(vector["uart"])
    assert encode(pack(1, names, data)) == line == board.sent
    board.feed(line)
    assert board.frames == [(tuple(names), data)]


def test_a_header_has_the_tokens_of_the_names() -> None:
    assert tokens.header(["fridge"]) == f"#define TOKEN_FRIDGE 0x{token('fridge'):08X}u\n"
    with pytest.raises(ValueError, match="rename"):
        tokens.header(["a-b", "a_b"])


CORES = [
    ("arm-none-eabi", "gcc-arm-none-eabi", ["-mcpu=cortex-m0", "-mthumb"], 1536),
    ("avr", "gcc-avr", ["-mmcu=atmega328p"], 2048),
    ("riscv64-unknown-elf", "gcc-riscv64-unknown-elf", ["-march=rv32imac", "-mabi=ilp32"], 2048),
]


@pytest.mark.parametrize(("prefix", "package", "flags", "most"), CORES, ids=[core[0] for core in CORES])
def test_the_node_stays_below_its_size(
    prefix: str, package: str, flags: list[str], most: int, tmp_path: Path
) -> None:
    compiler = shutil.which(f"{prefix}-gcc")
    if compiler is None:
        pytest.skip(f"no {prefix}-gcc: install Debian's {package}")
    for receive, bound in ((1, most), (0, most // 2)):
        made = str(tmp_path / f"{receive}.o")
        command = [
            compiler,
            *STRICT,
            "-ffreestanding",
            "-Os",
            *flags,
            f"-DBCN_RECEIVE={receive}",
            "-c",
            str(SOURCE),
        ]
        subprocess.run([*command, "-o", made], check=True)
        sizes = subprocess.check_output([f"{prefix}-size", made], text=True).splitlines()[1].split()
        assert int(sizes[0]) + int(sizes[1]) <= bound, (receive, sizes)
        assert sizes[1:3] == ["0", "0"]  # no globals in RAM


def test_a_million_lines_pass_the_sanitizers(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: install gcc")
    made, driver = tmp_path / "driver", Path(__file__).with_name("cnode_driver.c")
    flags = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I", str(SOURCE.parent)]
    built = subprocess.run(
        [compiler, *flags, str(driver), str(SOURCE), "-o", str(made)], capture_output=True, text=True
    )
    if "cannot find" in built.stderr:
        pytest.skip("gcc has no sanitizers here: install libasan")
    assert built.returncode == 0, built.stderr
    got, damaged = map(int, subprocess.check_output([made], text=True).split())
    assert got > 400_000
    assert damaged > 10_000
