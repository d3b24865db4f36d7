"""What a command prints, to a terminal, a file or a pipe, is plain text, whoever wrote it."""

import io
import sys
from contextlib import suppress

import pytest

from appliance.commandline import cli
from appliance.process import streams
from appliance.process.streams import plainly

HOSTILE = "\x1b[2J\x1b]0;owned\x07 a\rb\x00c\x9b31md\u202egpj.exe\u2066\u200bz\u2028l\x7f"


def moves(text: str) -> set[str]:
    """Return the characters of a text that are no signs, without the ends of lines."""
    return {one for one in text if not one.isprintable()} - {"\n", "\t"}


def test_text_is_printed_with_signs_blanks_and_ends_of_lines_only() -> None:
    assert moves(plainly(HOSTILE)) == set()
    assert plainly("größe 1\u00a0m\ttab\nline") == "größe 1\u00a0m\ttab\nline"
    assert plainly("a\udcffb\x1b") == "a\udcffb?", "a byte of a file name is escaped by the stream"
    assert len(plainly(HOSTILE)) == len(HOSTILE)


def test_all_that_a_command_prints_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with streams.plain():
        print(HOSTILE)
        print(HOSTILE, file=sys.stderr)
        sys.stdout.buffer.write(b"\x1b")
        print("\x1b[H", file=streams.terminal())
    assert (sys.stdout, sys.stderr) == (out, err)
    said = out.buffer.getvalue().decode()
    assert said == f"{plainly(HOSTILE)}\n\x1b\x1b[H\n"
    assert err.buffer.getvalue().decode() == f"{plainly(HOSTILE)}\n"


NOTHING = "/nowhere/"
WORDS = [
    ["check"], ["show"], ["run"], ["diff", "x"], ["install"], ["reload"], ["explain", "a"], ["send"],
    ["recv"], ["traffic"], ["values"], ["capture"], ["query"], ["device"], ["broker"], ["catalog"],
    ["syndicate"], ["tokens", "--names"], ["key", "name"], ["top", "--run-directory"], ["last"], ["audit"],
    ["rates"], ["report"], ["logs"], ["capture", "replay"], ["capture", "export"], ["pipeline", "compact"],
    ["client", "--catalog"], ["monitor", "--catalog"], ["create", "--join"], ["no-such"],
]  # fmt: skip


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_hostile_word_is_shown_plainly_by_every_command(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of files come from others too, by way of completion and archives."""
    with suppress(SystemExit):
        cli.main([*words, NOTHING + HOSTILE.replace("\0", "")])
    out, err = capsys.readouterr()
    assert out + err
    assert moves(out + err) == set()
    assert "Traceback" not in out + err


def test_a_note_that_standard_error_does_not_take_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[int]()
    with suppress(OSError), open("/dev/full", "w") as out, open("/dev/full", "w", buffering=1) as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with streams.plain():
            for number in range(3):
                print("a note", file=sys.stderr, flush=True)
                said.append(number)
            with pytest.raises(OSError, match="No space"):
                print("what was asked for", flush=True)
    assert said == [0, 1, 2]
