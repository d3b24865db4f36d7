"""The loader: `python -m bus.embedded.load --port /dev/ttyACM0 --parts uart --app app.py` sends a node.

It uses the raw REPL of MicroPython, and sends pieces that a board with 9 KB of heap can compile. With
`--boot` it stores the pieces in the board's file system, with a `main.py` that runs them at every start.
"""

import argparse
import ast
import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bus.embedded.shrink import joined, pieces, shrink, statements

NODE = Path(__file__).with_name("buscoupler_node.py")
TMQ = Path(__file__).with_name("buscoupler_tmq.py")
ASKING = Path(__file__).with_name("buscoupler_asking.py")
STORED = "node.txt"
QUIET = "from micropython import kbd_intr"
STOP = b"\x03" * 5
TIDY = "hasattr(gc,'threshold')and gc.threshold(gc.mem_free()//4)"
"""Collect garbage each time a quarter of the free heap is used. In a heap that fills up before each
collection, what stays lands everywhere, until no room for a frame is left in one piece."""
BOOT = f"""\
import gc
{QUIET}
kbd_intr(-1)
try:
 from microbit import sleep, uart
 sleep(500)
 if (uart.read(64) or b'').find({STOP!r}) >= 0:
  raise KeyboardInterrupt
except ImportError:
 pass
f = open({STORED!r})
s = ''
while True:
 l = f.readline()
 if l > '\\n':
  s += l
 else:
  exec(s)
  s = ''
  gc.collect()
  if not l:
   break
f.close()
"""
"""The `main.py` that runs the stored pieces one by one; an empty line ends a piece. Received bytes must not
interrupt it, so Ctrl-C is off; only `STOP`, within the first half second, ends it."""
RUN = """\
kbd_intr(-1)
while 1:
 node.poll()
 work()
"""
"""The loop, at module level because the micro:bit's stack is seven calls deep. Ctrl-C is off because a frame
may hold its byte."""
RUN_ALWAYS = """\
while 1:
 try:
  node.poll()
  work()
 except Exception as e:
  print(e)
"""

_COMMAND_BYTES = 60  # the micro:bit's receive buffer has 63 bytes, and there is no flow control
_BANNER = b"raw REPL; CTRL-B to exit\r\n>"
_FREE = "import gc;gc.collect();print(gc.mem_free())"


class BoardError(Exception):
    """The board did not do what the loader asked for; the text holds its answer."""


class Board:
    """The raw REPL at `descriptor`, an open serial line. `timeout_s` of silence raises `BoardError`."""

    def __init__(self, descriptor: int, timeout_s: float = 10.0) -> None:
        self._descriptor, self._timeout_s = descriptor, timeout_s
        self._heard = b""

    def enter(self) -> None:
        """Interrupt the running program and enter the raw REPL, with the empty heap of a soft reset.

        What was interrupted may have left a heap that takes not even a line. A running node ends only by a
        reset of the board.
        """
        self._interrupt()
        self._write(b"\x01\x04")
        self.wait_for(b"soft reboot")
        self._interrupt()

    def _interrupt(self) -> None:
        end_s = time.monotonic() + self._timeout_s
        while _BANNER not in self._heard:
            if time.monotonic() > end_s:
                raise BoardError(
                    "the board shows no prompt: start again, and press its reset button meanwhile"
                )
            self._write(b"\r" + STOP + b"\x01")
            self._hear(0.2)
        while self._hear(0.2):  # the board may answer several requests
            pass
        self._heard = b""

    def start(self, command: str) -> None:
        """Have the board compile and run at most 60 bytes of code; do not wait for their end."""
        self._write(command.encode() + b"\x04")
        self.wait_for(b"OK")

    def finish(self) -> str:
        """Wait for the end of the code; return its output. Raises `BoardError` with the board's traceback."""
        printed = self.wait_for(b"\x04")[:-1]
        error = self.wait_for(b"\x04")[:-1]
        self.wait_for(b">")
        if error:
            raise BoardError(error.decode(errors="replace").strip())
        return printed.decode(errors="replace")

    def run(self, code: str) -> str:
        """Run `code` to its end and return its output. Longer code is first collected on the board."""
        if len(code.encode()) <= _COMMAND_BYTES:
            self.start(code)
            return self.finish()
        self.run("s=[]")
        for part in _literals(code, _COMMAND_BYTES - len("s.append()")):
            self.run(f"s.append({part})")
        self.run("s=''.join(s)")
        self.heap_bytes()
        return self.run("exec(s)")

    def heap_bytes(self) -> int:
        """Collect garbage and return the free bytes of the heap."""
        return int(self.run(_FREE))

    def define(self, codes: Sequence[str]) -> None:
        """Run `codes` one by one, and collect garbage after each: it would fragment a small heap."""
        for code in codes:
            self.run(code)
            self.run("s=0")
            self.heap_bytes()

    def store(self, name: str, text: str) -> None:
        """Write a file to the board's file system."""
        self.run(f"f = open({name!r}, 'w')")
        for part in _literals(text, _COMMAND_BYTES - len("f.write()")):
            self.run(f"f.write({part})")
        self.run("f.close()")

    def restart(self) -> None:
        """Reset the board by software: it runs `main.py`."""
        self._write(b"\x02\x04")

    def _write(self, data: bytes) -> None:
        while data:
            if not select.select([], [self._descriptor], [], self._timeout_s)[1]:
                with contextlib.suppress(termios.error):
                    termios.tcflush(self._descriptor, termios.TCOFLUSH)  # the end of the program would wait
                raise BoardError(f"the line took nothing for {self._timeout_s} s: check the cable, try again")
            data = data[os.write(self._descriptor, data) :]

    def wait_for(self, mark: bytes) -> bytes:
        """Return the board's output up to and including `mark`."""
        while mark not in self._heard:
            if not self._hear(self._timeout_s):
                raise BoardError(
                    f"the board sent {self._heard[-200:]!r} but no {mark!r} within {self._timeout_s} s: "
                    "reset it and try again"
                )
        found, _, self._heard = self._heard.partition(mark)
        return found + mark

    def _hear(self, seconds: float) -> bool:
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        data = os.read(self._descriptor, 4096)
        if not data:
            raise BoardError("the serial line closed: check the cable, then try again")
        self._heard += data
        return True


def _literals(text: str, most: int) -> Iterator[str]:
    """Split `text` into Python literals of at most `most` bytes each."""
    part = ""
    for character in text:
        if len(repr(part + character).encode()) > most:
            yield repr(part)
            part = ""
        part += character
    if part:
        yield repr(part)


def source() -> str:
    """Return all parts of the node."""
    return joined(path.read_text() for path in (NODE, TMQ, ASKING))


def node_codes(parts: list[str]) -> list[str]:
    """Return the pieces of code that define the node's `parts` on a board, and tidy its heap from then on."""
    return [*statements(source(), parts), TIDY]


def open_port(path: str, baud: int = 115200) -> int:
    """Open a serial port in raw mode and return its descriptor.

    Raises OSError, or ValueError for a rate that termios does not have.
    """
    speed = getattr(termios, f"B{baud}", None)
    if speed is None:
        raise ValueError(f"there is no rate of {baud} baud: use a standard one, such as 115200")
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    tty.setraw(descriptor, termios.TCSANOW)  # else it waits until all is sent
    settings = termios.tcgetattr(descriptor)
    settings[4] = settings[5] = speed
    termios.tcsetattr(descriptor, termios.TCSANOW, settings)
    return descriptor


def load(board: Board, parts: list[str], app: str = "", tell: Callable[[str], None] = print) -> None:
    """Define the node's `parts` on the board, then run `app`. If it makes a `node`, start the loop."""
    board.enter()
    before = board.heap_bytes()
    board.define(node_codes(parts))
    tell(f"free heap: {before} bytes before, {board.heap_bytes()} with the node")
    board.define(pieces(app))
    if makes_node(app):
        tell(f"free heap: {board.heap_bytes()} bytes with the program, which now runs")
        board.run(QUIET)
        board.start(_loop(RUN, app))


def makes_node(app: str) -> bool:
    """Return whether a program assigns `node`."""
    return any(target.id == "node" for node in ast.parse(app).body for target in _targets(node))


def _loop(loop: str, app: str) -> str:
    """Return `loop`, without its call of `work()` if `app` does not define it."""
    body = ast.parse(app).body
    if any(isinstance(node, ast.FunctionDef) and node.name == "work" for node in body):
        return loop
    return "".join(line for line in loop.splitlines(keepends=True) if "work()" not in line)


def _targets(node: ast.stmt) -> list[ast.Name]:
    return [t for t in node.targets if isinstance(t, ast.Name)] if isinstance(node, ast.Assign) else []


def install(board: Board, parts: list[str], app: str, tell: Callable[[str], None] = print) -> None:
    """Store the node's `parts` and `app` on the board and reset it, so that they start as at every power-up.

    Raises ValueError if `app` does not assign `node`.
    """
    if not makes_node(app):
        raise ValueError("--boot needs a program that assigns `node`: name one with --app")
    board.enter()
    codes = [*node_codes(parts), *pieces(app)]
    board.store(STORED, "\n\n".join(codes) + "\n")
    board.store("main.py", BOOT + _loop(RUN_ALWAYS, app))
    tell(f"stored {sum(map(len, codes))} bytes in {len(codes)} pieces")
    board.restart()


def main(arguments: Sequence[str] | None = None) -> int:
    """Load, and return the exit status: 0 loaded, 1 the board or the port failed, 2 wrong use."""
    options = _parser().parse_args(arguments)
    parts = options.parts.split(",") if options.parts else []
    try:
        if options.port is None:
            sys.stdout.write(shrink(source(), parts))
            return 0
        app = Path(options.app).read_text() if options.app else ""
        board = Board(open_port(options.port, options.baud))
        (install if options.boot else load)(board, parts, app)
    except OSError as error:
        print(f"{error.filename or options.port}: {error.strerror or error}", file=sys.stderr)
        return 1
    except (BoardError, ValueError, SyntaxError) as error:
        print(f"{options.port or 'load'}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bus.embedded.load", description=__doc__)
    parser.add_argument("--port", help="the board's serial port; without it, print the reduced file")
    parser.add_argument("--baud", type=int, default=115200)
    parser.add_argument(
        "--parts", default="uart", help="from uart, rs485, tcp, i2c, tmq, separated by commas (default: uart)"
    )
    parser.add_argument(
        "--app", help="your program: it assigns `node`, which is polled for ever; it may define work()"
    )
    parser.add_argument("--boot", action="store_true", help="store both on the board, to run at every start")
    return parser


if __name__ == "__main__":
    sys.exit(main())
