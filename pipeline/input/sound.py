"""The look at the files of a local capture before an engine reads them: its errors name no file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bus.machine.scratch import Scratch
from capture import files
from capture.files import CaptureError
from capture.schema import META_GATEWAY, Kind
from pipeline.input import stored
from pipeline.input.span import WHOLE, Span
from pipeline.input.summaries import summaries
from pipeline.input.unread import Unread, unread

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

SKIPPED_STATUS: Final = 3
"""The exit status of a job that left files out."""
_SHOWN: Final = 5
_FEW: Final = 200
"""Files whose summaries are read here sooner than an engine would."""


class Bad(NamedTuple):
    """A file that is left out, and why; the text names it."""

    path: Path
    text: str


class _Span(NamedTuple):
    """The numbers of the rows in a file: those of one run of one recorder are unique."""

    run: tuple[str, str]
    first: int
    last: int
    path: Path
    rows: int
    newest_ns: int


class Looked(NamedTuple):
    """The files that are unfit; how many rows were recorded in the others, None if nobody here can look; the
    time of the newest row of each file (0 if it says none); what was in journals beside them; and the
    `summaries` at the ends of the files, unless these are many or the span has bounds."""

    bad: list[Bad]
    rows: int | None
    newest: Mapping[Path, int]
    unread: Sequence[Unread] = ()
    summaries: Sequence[Mapping[str, Any]] = ()

    @property
    def newest_ns(self) -> int:
        """The time of the newest row; 0 if there is none."""
        return max(self.newest.values(), default=0)


def look(directory: Path, thorough: bool, span: Span = WHOLE) -> Looked:
    """Open every file of a span of a capture. Find those that are unfit, or that have rows of another one.

    `thorough`: read all of it, which takes about as long as a job; else only what files say of themselves.
    """
    bad, spans, journals = list[Bad](), list[_Span](), unread(directory)
    paths = list(filter(span.has, files.finished(directory)))
    is_summed = len(paths) <= _FEW and not span.is_bounded  # summaries are about whole files
    told = dict[Path, list[dict[str, Any]]]()
    for path in paths:
        try:
            with files.opened(path) as file:
                _check_gateway(path, file)
                spans += _spans(path, file)
                told[path] = summaries(path, file) if is_summed else []
                for group in range(file.metadata.num_row_groups if thorough else 0):
                    file.read_row_group(group)
        except CaptureError as error:
            bad.append(Bad(path, str(error)))
    unfit = {one.path for one in bad}
    bad += _doubled(sorted(span for span in spans if span.path not in unfit))
    unfit = {one.path for one in bad}
    good = [span for span in spans if span.path not in unfit]
    newest = {span.path: span.newest_ns for span in good}
    every = [one for path, some in told.items() if path not in unfit for one in some]
    return Looked(bad, sum(span.rows for span in good), newest, journals, every)


def _check_gateway(path: Path, file: "ParquetFile") -> None:
    """Raise `CaptureError` if the directory of a file names another gateway than the file does: it is a copy
    of another one's rows, or a gateway was renamed."""
    said = (file.metadata.metadata or {}).get(META_GATEWAY.encode(), b"").decode()
    if said and said != files.gateway_of(path):
        raise CaptureError(
            f"{path}: recorded by gateway {said}, not by {files.gateway_of(path)}, as its directory says: "
            "move it where it belongs"
        )


def _spans(path: Path, file: "ParquetFile") -> Iterator[_Span]:
    """Yield the numbers of the rows in a file, if it says them."""
    if not files.is_ours(file):
        yield from _rewritten(path, file)
        return
    column = file.schema_arrow.get_field_index("cap_seq")
    groups = (file.metadata.row_group(n).column(column) for n in range(file.metadata.num_row_groups))
    found = [one.statistics for one in groups if one.is_stats_set and one.statistics.has_min_max]
    if found:
        run = files.gateway_of(path), files.boot_of(path)
        yield _Span(run, min(one.min for one in found), max(one.max for one in found), path, *_rows(file))


def _rewritten(path: Path, file: "ParquetFile") -> Iterator[_Span]:
    """Yield the numbers of the rows in a file of several others, which another program put together."""
    from capture import ranges

    newest, gateway = _rows(file)[1], files.gateway_of(path)
    for boot, intervals in ranges.of(file).items():
        run = gateway, files.name_of(boot, 0).partition("-")[0]
        for first, last in intervals:
            yield _Span(run, first, last, path, last - first + 1, newest)


def _rows(file: "ParquetFile") -> tuple[int, int]:
    """Count the rows of a file, without the summary at its end, and find the time of the newest. They are
    read if another program wrote the file without statistics."""
    kind, time = (file.schema_arrow.get_field_index(name) for name in ("kind", "ts_ns"))
    groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
    bounds = [(one.column(kind).statistics, one.column(time).statistics) for one in groups]
    if not all(one is not None and one.has_min_max for both in bounds for one in both):
        return _counted(file)
    recorded = [n for n, (kinds, _) in enumerate(bounds) if kinds.min != Kind.CONTENTS.value]
    newest = max((bounds[n][1].max for n in recorded), default=0)
    return sum(groups[n].num_rows for n in recorded), newest


def _counted(file: "ParquetFile") -> tuple[int, int]:
    import pyarrow.compute as pc

    rows = file.read(columns=["kind", "ts_ns"])
    recorded = rows.filter(pc.not_equal(rows["kind"], Kind.CONTENTS.value))
    return len(recorded), pc.max(recorded["ts_ns"]).as_py() or 0


def _doubled(spans: list[_Span]) -> Iterator[Bad]:
    """Yield the files that have rows of an earlier one."""
    before = list[_Span]()
    for span in spans:
        before = [one for one in before if one.run == span.run and one.last >= span.first]
        other = next((one for one in before if _share(one.path, span.path)), None)
        if other is None:
            before.append(span)
        else:
            yield Bad(span.path, f"{span.path}: has rows that are in {other.path} too: one of them is a copy")


def _share(one: Path, other: Path) -> bool:
    """Return whether two files of a run have a row in common: a merged one can have holes, where others fit
    in."""
    from capture import ranges

    return ranges.overlap(ranges.of_path(one), ranges.of_path(other))


def version_by_url(url: str, found: stored.Listing) -> str:
    """Look at the newest of the files found for each day and gateway, in an object store: say what is wrong
    with the first that this program cannot read, "" if nothing is.

    An engine reads a file of a later version as if it were of this one. Raises `CaptureError` if nobody here
    can look.
    """
    from pyarrow.parquet import ParquetFile

    from capture.stores import store_of

    store = store_of(url)
    newest = {name.rpartition("/")[0]: name for name in found.sizes}
    for name in newest.values():
        with store.opened(name) as stream, ParquetFile(stream) as file:
            if found.is_logged and not files.is_ours(file):
                continue
            try:
                files.check_version(f"{url}/{name}", file.metadata.metadata or {})
            except CaptureError as error:
                return str(error)
    return ""


@contextmanager
def without(directory: Path, bad: list[Bad]) -> Iterator[Path]:
    """Yield a directory with links to all files of a capture but those."""
    left_out = {one.path for one in bad}
    with Scratch() as made:
        for path in (path for path in files.listed(directory) if path not in left_out):
            link = Path(made, *path.absolute().parts[-3:])
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.absolute())
        names = files.names_directory(directory)
        if names.is_dir():
            Path(made, files.NAMES).symlink_to(names.absolute())
        yield Path(made)


def told(bad: list[Bad]) -> Iterator[str]:
    """Yield a line for each of the first files that are left out, and one for the others."""
    yield from (one.text for one in bad[:_SHOWN])
    if len(bad) > _SHOWN:
        yield f"... and {len(bad) - _SHOWN} more"


def passed_by(directory: Path) -> str:
    """Say in one line which files are none of a capture; "" if all are."""
    found = files.foreign(directory)
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"passed by what is no file of a capture: {found[0]}{more}"


def unknown(gateways: Sequence[str], directory: Path) -> Iterator[str]:
    """Yield a line for each gateway that is asked for and has no file of a capture: the name may be wrong."""
    known = sorted({files.gateway_of(path) for path in files.listed(directory)}) if gateways else []
    for name in gateways:
        if name not in known:
            yield f"--gateway {name}: the capture has no such gateway, but {', '.join(known)}"
