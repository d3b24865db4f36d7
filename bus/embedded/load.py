"""`python -m bus.embedded.load --port /dev/ttyACM0 --parts uart --app app.py`: the node onto a board.

Over the raw REPL of MicroPython, in pieces that a board with 9 KB of heap can compile. With `--boot` the
pieces are stored in the board's file system, with a `main.py` that runs them at every start.
"""

import argparse
import ast
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bus.embedded.shrink import pieces, shrink, statements

NODE = Path(__file__).with_name("buscoupler_node.py")
STORED = "node.txt"
QUIET = "from micropython import kbd_intr"
STOP = b"\x03" * 5
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
"""Runs what is stored piece by piece; an empty line ends a piece. What arrives meanwhile must not stop it, so
there is half a second in which `STOP`, and nothing else, does."""
RUN = """\
kbd_intr(-1)
while 1:
 node.poll()
 work()
"""
"""The loop, at the top: the micro:bit's stack is seven calls deep. A frame may hold the byte of Ctrl-C."""
RUN_ALWAYS = """\
while 1:
 try:
  node.poll()
  work()
 except Exception as e:
  print(e)
"""

_COMMAND_BYTES = 60  # the micro:bit receives into 63 bytes, and nothing else holds the sender back
_BANNER = b"raw REPL; CTRL-B to exit\r\n>"
_FREE = "import gc;gc.collect();print(gc.mem_free())"


class BoardError(Exception):
    """The board did not do what it was asked to; says what it answered."""


class Board:
    """The raw REPL at `descriptor`, an open serial line; `BoardError` also after `timeout_s` of silence."""

    def __init__(self, descriptor: int, timeout_s: float = 10.0) -> None:
        self._descriptor, self._timeout_s = descriptor, timeout_s
        self._heard = b""

    def enter(self) -> None:
        """Interrupt whatever runs and enter the raw REPL; a running node must be reset while this tries."""
        end_s = time.monotonic() + self._timeout_s
        while _BANNER not in self._heard:
            if time.monotonic() > end_s:
                raise BoardError("no prompt: press the board's reset button while this tries")
            self._write(b"\r" + STOP + b"\x01")
            self._hear(0.2)
        while self._hear(0.2):  # it may have been asked more than once
            pass
        self._heard = b""

    def start(self, command: str) -> None:
        """Have at most 60 bytes of code compiled and run, and do not wait for their end."""
        self._write(command.encode() + b"\x04")
        self.wait_for(b"OK")

    def finish(self) -> str:
        """What the code printed, once it has ended. Raises `BoardError` with the board's traceback."""
        printed = self.wait_for(b"\x04")[:-1]
        error = self.wait_for(b"\x04")[:-1]
        self.wait_for(b">")
        if error:
            raise BoardError(error.decode(errors="replace").strip())
        return printed.decode(errors="replace")

    def run(self, code: str) -> str:
        """Run `code` to its end; returns what it printed. Longer code is collected on the board first."""
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
        """Free bytes after a collection."""
        return int(self.run(_FREE))

    def define(self, codes: Sequence[str]) -> None:
        """Run `codes` one by one, with a collection after each: garbage would break a small heap up."""
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
        """Soft reset: `main.py` is run."""
        self._write(b"\x02\x04")

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]

    def wait_for(self, mark: bytes) -> bytes:
        """What the board says up to `mark` and with it."""
        while mark not in self._heard:
            if not self._hear(self._timeout_s):
                raise BoardError(f"no {mark!r} within {self._timeout_s} s, only {self._heard[-200:]!r}")
        found, _, self._heard = self._heard.partition(mark)
        return found + mark

    def _hear(self, seconds: float) -> bool:
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        data = os.read(self._descriptor, 4096)
        if not data:
            raise BoardError("the line is gone")
        self._heard += data
        return True


def _literals(text: str, most: int) -> Iterator[str]:
    """`text` as Python literals of at most `most` bytes each."""
    part = ""
    for character in text:
        if len(repr(part + character).encode()) > most:
            yield repr(part)
            part = ""
        part += character
    if part:
        yield repr(part)


def open_port(path: str, baud: int = 115200) -> int:
    """The descriptor of a serial port, raw. Raises OSError, or ValueError for a rate that termios lacks."""
    speed = getattr(termios, f"B{baud}", None)
    if speed is None:
        raise ValueError(f"no such rate: {baud}")
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(descriptor)
    settings = termios.tcgetattr(descriptor)
    settings[4] = settings[5] = speed
    termios.tcsetattr(descriptor, termios.TCSANOW, settings)
    return descriptor


def load(board: Board, parts: list[str], app: str = "", tell: Callable[[str], None] = print) -> None:
    """Define the node's `parts` on the board, then run `app`; where it makes a `node`, start the loop."""
    board.enter()
    before = board.heap_bytes()
    board.define(statements(NODE.read_text(), parts))
    tell(f"{before} bytes of heap were free, {board.heap_bytes()} are left beside the node")
    board.define(pieces(app))
    if makes_node(app):
        tell(f"{board.heap_bytes()} are left beside the program; it runs")
        board.run(QUIET)
        board.start(_loop(RUN, app))


def makes_node(app: str) -> bool:
    """Whether a program assigns `node`."""
    return any(target.id == "node" for node in ast.parse(app).body for target in _targets(node))


def _loop(loop: str, app: str) -> str:
    """`loop` without its call of `work()` if `app` defines none."""
    body = ast.parse(app).body
    if any(isinstance(node, ast.FunctionDef) and node.name == "work" for node in body):
        return loop
    return "".join(line for line in loop.splitlines(keepends=True) if "work()" not in line)


def _targets(node: ast.stmt) -> list[ast.Name]:
    return [t for t in node.targets if isinstance(t, ast.Name)] if isinstance(node, ast.Assign) else []


def install(board: Board, parts: list[str], app: str, tell: Callable[[str], None] = print) -> None:
    """Store the node's `parts` and `app` on the board, and start them as at every power-up.

    Raises ValueError if `app` makes no `node`.
    """
    if not makes_node(app):
        raise ValueError("what runs at every start needs an --app that assigns `node`")
    board.enter()
    codes = [*statements(NODE.read_text(), parts), *pieces(app)]
    board.store(STORED, "\n\n".join(codes) + "\n")
    board.store("main.py", BOOT + _loop(RUN_ALWAYS, app))
    tell(f"stored {sum(map(len, codes))} bytes in {len(codes)} pieces")
    board.restart()


def main(arguments: Sequence[str] | None = None) -> int:
    """0: loaded; 1: the board or the port refused; 2: wrong use."""
    options = _parser().parse_args(arguments)
    parts = options.parts.split(",") if options.parts else []
    try:
        if options.port is None:
            sys.stdout.write(shrink(NODE.read_text(), parts))
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
    parser.add_argument("--port", help="the board's serial port; without it, the small file is printed")
    parser.add_argument("--baud", type=int, default=115200)
    parser.add_argument(
        "--parts", default="uart", help="of uart, rs485, tcp, i2c; with commas (default: uart)"
    )
    parser.add_argument(
        "--app", help="your program: it makes `node`, which is polled for ever, with work() if there is one"
    )
    parser.add_argument("--boot", action="store_true", help="store all on the board, to run at every start")
    return parser


if __name__ == "__main__":
    sys.exit(main())
