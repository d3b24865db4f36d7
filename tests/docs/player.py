"""Follows pages: types their blocks into terminals, and waits for what they show.

A page has a script in `stages/` if its blocks need something that a reader has by then, such as a topology or
a gateway that runs: it is typed first, in a terminal of its own.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.helpers import ROOT
from tests.helpers.shown import Block, Clone, blocks
from tests.helpers.terminal import FAILED, Terminal

STAGES = Path(__file__).parent / "stages"
_STAGE = "the stage of the page"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def stage_of(page: Path) -> str:
    """Return the script that is typed before the blocks of a page; empty if there is none."""
    script = STAGES / f"{name_of(page).removesuffix('.md').replace('/', '-')}.sh"
    return script.read_text() if script.exists() else ""


def follow(page: Path, home: Path) -> None:
    """Type all blocks of a page, in order. Raises `AssertionError` for the first that differs."""
    clone, shown = Clone(home), [block for block in blocks(page) if block.kind in ("sh", "python", "text")]
    with terminals(clone, shown) as opened:
        if stage := stage_of(page):
            _type(clone, opened[_STAGE], Block("sh", "", stage, "", 0))
            _end(opened[_STAGE], line=0)
        for number, block in enumerate(shown):
            terminal, later = opened[block.terminal], shown[number + 1 :]
            if block.is_run:
                _run(clone, terminal, block, _answered(block, later))
            elif block.kind == "text" and not block.reason and _belongs(shown[:number], block):
                terminal.wait(clone.here(block.text))


@contextmanager
def terminals(clone: Clone, shown: Sequence[Block]) -> Iterator[dict[str, Terminal]]:
    """Open all terminals that a page names. Close them at the end."""
    names = dict.fromkeys([_STAGE, *(block.terminal for block in shown)])
    opened = {name: Terminal(clone.home, clone.environment) for name in names}
    try:
        yield opened
    finally:
        for terminal in opened.values():
            terminal.close()
        clone.clear()


def _answered(block: Block, later: Sequence[Block]) -> bool:
    """Whether the next block of the same terminal shows what appears."""
    following = next((one for one in later if one.terminal == block.terminal), None)
    return following is not None and following.kind == "text"


def _belongs(before: Sequence[Block], text: Block) -> bool:
    """Whether a block shows what the last program in its terminal prints, and that program is run."""
    mine = [one for one in before if one.terminal == text.terminal and one.is_program]
    return bool(mine) and mine[-1].is_run


def _run(clone: Clone, terminal: Terminal, block: Block, is_answered: bool) -> None:
    key = block.text.strip()
    if key in ("^C", "^\\"):
        terminal.type(key)
        return None if is_answered else terminal.finish()
    terminal.end()  # the reader has seen enough of the last one
    before = len(terminal.seen)
    _type(clone, terminal, block)
    return None if is_answered else _end(terminal, block.line, before)


def _type(clone: Clone, terminal: Terminal, block: Block) -> None:
    file = clone.home / f"block-{block.line}.{'py' if block.kind == 'python' else 'sh'}"
    file.write_text(clone.here(block.text))
    terminal.type(f"{'.' if block.kind == 'sh' else 'python'} {file}")


def _end(terminal: Terminal, line: int, before: int = 0) -> None:
    terminal.finish()
    assert FAILED not in terminal.seen[before:], f"line {line}: {terminal.seen}"
