"""The code that the loader sends to a board."""

import ast
import os
import pty
import tty
from contextlib import suppress

import pytest

from bus.embedded.load import RUN, Board, BoardError, _loop, main, makes_node, open_port
from bus.embedded.shrink import pieces, select, shrink
from tests.bus.embedded.support import PARTS, SOURCE, small_node


def test_parts_bring_what_they_need() -> None:
    assert select(SOURCE, ["rs485"]) == ["core", "uart", "rs485"]
    assert select(SOURCE, []) == ["core"]
    with pytest.raises(
        ValueError, match="there is no part 'can': use core, uart, rs485, clock, tcp, i2c, tmq, asking"
    ):
        select(SOURCE, ["can"])


@pytest.mark.parametrize("part", PARTS)
def test_each_part_runs_alone_and_is_small(part: str) -> None:
    text = shrink(SOURCE, [part])
    assert "#" not in text
    assert '"""' not in text
    assert len(text) < (14450 if part == "tmq" else 7000)
    assert hasattr(small_node([part]), "Node")


def test_pieces_define_what_the_whole_defines() -> None:
    whole: dict[str, object] = {}
    parted: dict[str, object] = {}
    exec(SOURCE, whole)
    for piece in pieces(SOURCE):
        exec(piece, parted)
    for name, value in whole.items():
        if isinstance(value, type):
            assert set(vars(value)) <= {*vars(parted[name]), "__doc__", "__firstlineno__"}
    assert set(whole) <= {*parted, "_"}
    assert max(len(piece) for piece in pieces(SOURCE)) < 1100


def test_the_loop_fits_the_program() -> None:
    assert makes_node("node = 1")
    assert not makes_node("def node(): pass")
    assert "work()" not in _loop(RUN, "node = 1")
    assert _loop(RUN, "def work(): pass") == RUN
    assert len(RUN) <= 60
    ast.parse(RUN)


def test_the_command_prints_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--parts", "uart"]) == 0
    assert capsys.readouterr().out == shrink(SOURCE, ["uart"])
    assert main(["--parts", "lora"]) == 1
    assert main(["--port", "/dev/no-such-board"]) == 1
    assert capsys.readouterr().err.endswith("/dev/no-such-board: No such file or directory\n")
    assert main(["--port", "/dev/null", "--app", "/no/app.py"]) == 1
    assert capsys.readouterr().err == "/no/app.py: No such file or directory\n"


def test_a_line_that_takes_nothing_is_told() -> None:
    """As one whose cable holds the flow control: a write waited for ever."""
    far, near = pty.openpty()
    tty.setraw(near)
    line = open_port(os.ttyname(near))
    os.set_blocking(near, False)
    with suppress(BlockingIOError):
        while True:
            os.write(near, b"x")
    with pytest.raises(BoardError, match="took nothing"):
        Board(line, timeout_s=0.05).restart()
    for one in (line, near, far):
        os.close(one)
