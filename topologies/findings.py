"""The faults of a topology, with their places. They are collected, not raised one by one."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from bus.errors import TopologyError
from bus.schema import Where
from bus.text import plain

Level = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One fault of a topology; `str()` returns `file:line:column: level: path: text` on one line."""

    level: Level
    file: str
    line: int
    column: int
    path: str
    text: str

    def __str__(self) -> str:
        return self._joined(self.level)

    @property
    def logged(self) -> str:
        """The line for a log, which has a level of its own."""
        return self._joined("")

    def _joined(self, level: str) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return plain(": ".join(part for part in (place, level, self.path, self.text) if part))


class InvalidTopology(TopologyError):
    """The error for a topology that cannot be run. `findings` are the reasons; its text has them as lines."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sorted(findings, key=lambda finding: (finding.line, finding.column))
        super().__init__("\n".join(str(finding) for finding in self.findings))


def error(where: Where, text: str) -> Finding:
    """Make a finding with which the topology cannot run."""
    return Finding("error", *where, text)


def warning(where: Where, text: str) -> Finding:
    """Make a finding with which the topology runs."""
    return Finding("warning", *where, text)


def note(where: Where, text: str) -> Finding:
    """Return a finding that needs nobody's action."""
    return Finding("note", *where, text)
