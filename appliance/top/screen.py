"""The screen of `top` on a terminal: a head that stays, as much of the text as fits, and the keys. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final, get_args

from appliance.status.terminal import Order

ORDERS: Final[tuple[Order, ...]] = get_args(Order)
HINT: Final = "q ends, arrows move, / filters, s sorts"
_COLOURS: Final = {"●": "32", "◌": "33", "▲": "31"}  # of the signs that `pages` puts before a verdict
_FILTER_LETTERS: Final = 60


class Screen:
    """The place in the text, the order of its links, and the filter, as keys have set them."""

    def __init__(self, coloured: bool = True) -> None:
        self.order: Order = "name"
        self.filter = ""
        self.is_done = False
        self._coloured = coloured
        self._top = self._page = self._last = 0
        self._typing: str | None = None

    def press(self, key: str) -> None:
        """Take one key."""
        if self._typing is not None:
            self._type(self._typing, key)
        elif key in ("q", "escape"):
            self._leave(key)
        elif key == "/":
            self._typing = ""
        elif key == "s":
            self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        else:
            self._move(key)

    def _leave(self, key: str) -> None:
        """End at `q`. Escape gives up a filter first."""
        if key == "escape" and self.filter:
            self.filter = ""
        else:
            self.is_done = True

    def _type(self, typed: str, key: str) -> None:
        if key == "enter":
            self.filter, self._typing, self._top = typed, None, 0
        elif key == "escape":
            self._typing = None
        elif key == "backspace":
            self._typing = typed[:-1]
        elif len(key) == 1:
            self._typing = (typed + key)[:_FILTER_LETTERS]

    def _move(self, key: str) -> None:
        steps = {
            "up": -1, "k": -1, "down": 1, "j": 1, "page up": -self._page, "b": -self._page,
            "page down": self._page, " ": self._page, "home": -self._top, "g": -self._top,
            "end": self._last, "G": self._last,
        }  # fmt: skip
        self._top = min(max(0, self._top + steps.get(key, 0)), self._last)

    def shown(self, head: str, text: str, columns: int, rows: int) -> str:
        """Return the whole screen: the head, a part of the text, and a line with the keys."""
        lines = list(_kept(text.split("\n"), self.filter.lower()))
        self._page = max(1, rows - 2)
        self._last = max(0, len(lines) - self._page)
        self._top = min(self._top, self._last)
        part = lines[self._top : self._top + self._page]
        part += [""] * (self._page - len(part))
        foot = self._foot(len(lines), columns)
        return "\n".join(
            [self._reversed(head, columns), *map(self._colour, part), self._reversed(foot, columns)]
        )

    def _foot(self, count: int, columns: int) -> str:
        """Return the last line. The keys are always whole."""
        if self._typing is not None:
            return f"filter: {self._typing}_   Enter takes it, Escape leaves it"
        shown = f"lines {self._top + 1} to {min(count, self._top + self._page)} of {count}"
        only = f", only what has {self.filter}" if self.filter else ""
        place = f"{shown}{only}, by {self.order}."
        room = max(0, columns - len(HINT) - 3)
        return f"{place if len(place) <= room else place[: room - 1] + '…'}   {HINT}"

    def _reversed(self, line: str, columns: int) -> str:
        cut = line[:columns].ljust(columns)
        return f"\x1b[7m{cut}\x1b[0m" if self._coloured else cut

    def _colour(self, line: str) -> str:
        colour = _COLOURS.get(line[:1]) if self._coloured else None
        return f"\x1b[1;{colour}m{line}\x1b[0m" if colour else line


def _kept(lines: Sequence[str], wanted: str) -> Iterator[str]:
    """Yield the headings, and of the blocks below them those that have the `wanted` text in a line.

    A block is a line that is indented by two, and the lines below it that are indented by more; that of the
    names of columns is a heading.
    """
    block = list[str]()
    for line in [*lines, ""]:
        if line.startswith("   ") and block:
            block.append(line)
            continue
        if any(wanted in one.lower() for one in block):
            yield from block
        is_heading = not line.startswith("  ") or line.startswith(("   ", "  link "))
        block = [] if is_heading else [line]
        if line and is_heading:
            yield line
