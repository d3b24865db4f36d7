"""The node on a current MicroPython: `micropython` from the path, or the WebAssembly build run by node."""

import os
import random
import shutil
import subprocess
from ast import literal_eval
from pathlib import Path

import pytest

from bridges.media.uart.codec import encode
from bus.embedded.load import NODE
from bus.wire.frame import pack
from bus.wire.pattern import token
from tests.bus.embedded.support import MICROPYTHON

BUILD = os.environ.get("MICROPYTHON_MJS", "")
RUNNER = Path(__file__).with_name("micropython.mjs")
pytestmark = pytest.mark.skipif(
    not MICROPYTHON and not (BUILD and shutil.which("node")),
    reason="needs `micropython` in the path; or node, and in MICROPYTHON_MJS the micropython.mjs of the npm"
    " package @micropython/micropython-webassembly-pyscript",
)
NAMES: list[str | int] = ["", "fridge", "Kühlschrank €😀", 7, 0xFFFFFFFF]
SCRIPT = """
import gc
gc.collect()
free = gc.mem_free()
from buscoupler_node import *
gc.collect()
class Line:
    data = b""
    def write(self, data):
        self.data += data
        return len(data)
    def read(self, size):
        data, self.data = self.data[:size], self.data[size:]
        return data or None
heard, said, results = [], [], []
for name in NAMES:
    results.append(token(name))
node = Node(Uart(Line(), 3084))
node.subscribe((), lambda tokens, data: heard.append((tokens, data)))
for tokens, data in FRAMES:
    node.publish(tokens, data)
    said.append(node.link.uart.data)
    node.poll()
    while node.link.uart.data or node.link.rest:
        node.poll()
box = Mailbox(bytearray(64))
box.send(pack(1, "a"))
box.memory[0x1F] = 1
box.poll()
tcp = Tcp("127.0.0.1", 1)
Rs485(Line(), 5).poll()
print(repr((results, said, heard, bytes(box.memory[0x20:0x2F]))))
"""


def test_what_it_computes_and_carries_is_what_the_gateway_does(tmp_path: Path) -> None:
    chance = random.Random(5)
    sizes = [(0, 0), (1, 1), (3, 60), (2, 255), (255, 2048), (0, 1024)]
    frames = [
        (tuple(chance.randrange(1 << 32) for _ in range(count)), bytes(chance.randbytes(size)))
        for count, size in sizes
    ]
    frames.append(((1,), b"\1" * 600))
    script = tmp_path / "script.py"
    script.write_text(f"NAMES = {NAMES!r}\nFRAMES = {frames!r}\n{SCRIPT}")
    shutil.copy(NODE, tmp_path)
    command = [MICROPYTHON] if MICROPYTHON else ["node", str(RUNNER), BUILD, str(NODE)]
    done = subprocess.run([*command, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tokens, said, heard, memory = literal_eval(done.stdout)
    assert tokens == [token(name) for name in NAMES]
    assert said == [encode(pack(1, *frame)) for frame in frames]
    assert heard == frames
    assert memory[:2] == bytes((0xE1, 12))
    assert memory[2:10] == pack(1, (token("a"),))
