"""The record of a format of files: what readers, the command, its help, the page and tests are made of."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, runtime_checkable

from bus.extras import absent, lacking
from bus.needs import Library
from capture.files import CaptureError
from capture.schema import TIME_MAX_NS

if TYPE_CHECKING:
    from bus.names import Names
    from capture.formats.source import Source
    from capture.frames import Frames
    from capture.pcapng import Packet

Style = dict[str, Any]
"""The way in which a file writes what can be written in several, as JSON takes it. A reader learns it, and a
writer of the same format follows it: a file that is imported and exported is the same, byte for byte."""


class Output(Protocol):
    """A writer of frames into a file. It raises `OSError`."""

    def add(self, frames: "Frames") -> None:
        """Write frames."""

    def close(self) -> None:
        """Write what stands at the end of the file, which stays open."""


@runtime_checkable
class RowOutput(Output, Protocol):
    """A writer of messages, too."""

    def add_rows(self, rows: "Iterable[Packet]", names: "Names") -> int:
        """Write messages, with the names of their tokens. Return their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of files.

    `reads` names, as `module:thing`, a generator of a `Source` and a `Style`; `writes` an `Output` made of a
    file and a `Style`; each is "" where it is not read, or not written.

    `fd` to `directions` say what a frame keeps in it. `step_ns` is the finest step of its times, and
    `last_ns` the last of them. `signs` are the beginnings of its files, `looks` a regular expression for a
    line of a text, and `suffixes` the ends of names.
    """

    key: str
    help: str
    suffixes: tuple[str, ...]
    reads: str = ""
    writes: str = ""
    signs: tuple[bytes, ...] = ()
    looks: bytes = b""
    step_ns: int = 1
    last_ns: int = TIME_MAX_NS
    fd: bool = True
    remote: bool = True
    errors: bool = True
    codes: bool = True
    directions: bool = True
    errors_lack: tuple[str, ...] = ()
    """The sorts of error frames that it cannot hold, where it has some: keys of `losses.OF_ERRORS`."""
    naming: str = ""
    """The maker, as `module:thing`, of a function for one file: from the name of a channel to the name that a
    reader finds. "" if the two are the same."""
    relative: bool = False
    """Whether its times count from the first frame, cut to ms; none is before that."""
    rows: bool = False
    """Whether it holds all rows of a capture, not only CAN frames."""
    messages: bool = False
    """Whether it holds the messages of buses, too."""
    seeks: bool = False
    """Whether its writer goes back in the file."""
    package: str = ""
    extra: str = ""

    def read(self, source: "Source", style: Style) -> "Iterator[Frames | list[Packet]]":
        """Read a file. Raises `CaptureError` if it is none of this format, or a package is missing."""
        found: Iterator[Frames | list[Packet]] = self._loaded(self.reads)(source, style)
        return found

    def names(self) -> Callable[[str], str]:
        """Return the function from the names of channels of one file to those that a reader finds."""
        made: Callable[[str], str] = self._loaded(self.naming)() if self.naming else str
        return made

    def output(self, file: BinaryIO, style: Style) -> Output:
        """Begin to write a file. Raises `CaptureError` if a package is missing (`check`: before the file is
        opened, which empties it)."""
        made: Output = self._loaded(self.writes)(file, style)
        return made

    def check(self) -> None:
        """Raise `CaptureError` if a package is missing that it is written with."""
        library = Library(self.package, self.package, self.extra)
        if self.package and (words := absent(self.key, library)):
            raise CaptureError(words)

    def _loaded(self, name: str) -> Any:
        module, _, thing = name.partition(":")
        try:
            return getattr(import_module(module), thing)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            extra = self.extra if missing == self.package else "capture"
            raise CaptureError(lacking(self.key, missing, extra)) from None
