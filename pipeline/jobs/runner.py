"""The runner: runs a job by its record, shows its tables, and makes its exit status."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from bus.text import amount
from capture.files import listed
from capture.formats.target import check_apart
from capture.schema import Kind
from pipeline.analysis.audit.verdict import Verdict
from pipeline.engine import choice
from pipeline.input import read, sound
from pipeline.jobs.opening import opened
from pipeline.jobs.record import Job, OpenCapture, collected
from pipeline.jobs.words import without_stacks
from pipeline.output import objects, place
from pipeline.output.names import named, titled
from pipeline.output.tables import width

if TYPE_CHECKING:
    from pyspark.sql import Row


def run(job: Job, options: argparse.Namespace) -> int:
    """Run a job. Returns its exit status: 1 if there is a row in one of its tables of faults."""
    if job.process is not None:
        return job.process(options)
    on_workers = job.on_workers is not None and job.on_workers(options)
    choice.check(choice.decide(options, choice.SAIL in job.engines), job.name, on_workers)
    for name in job.writes if job.tables is None else (*job.writes, "parquet"):
        if given := vars(options)[name]:
            check_apart(options.directory, given)
            place.check(given)
    if job.prepare is not None:
        job.prepare(options)
    with without_stacks(), opened(job, options) as capture:
        capture.tell(f"{job.name}: {_size(capture.directory)}")
        if capture.span.is_empty:
            print("nothing new since the last time")
            return 0
        if job.run is not None:
            return job.run(options, capture)
        status = show(job, options, capture)
        return sound.SKIPPED_STATUS if capture.left_out else status


def facts_line(ran: Mapping[str, Any]) -> str:
    """Say in a line which engine answered, of how much, how long it took, and whether it stays."""
    other = f" (pyspark {ran['pyspark']})" if ran["pyspark"] not in ("", ran["version"]) else ""
    stays = f"; it stays for {ran['stays_min']} minutes" if ran["stays_min"] else ""
    rows = "" if ran["rows"] is None else f"{ran['rows']:,} rows, {ran['bytes'] / 1e6:,.1f} MB, "
    return f"{ran['engine'].capitalize()} {ran['version']}{other}: {rows}{ran['seconds']:.1f} s{stays}"


def _size(where: str) -> str:
    if read.is_remote(where):
        return where
    return f"{len(listed(Path(where)))} files, {read.size_bytes(where) / 1e6:.1f} MB"


def show(job: Job, options: argparse.Namespace, capture: OpenCapture) -> int:
    """Print the tables, or one JSON object of them; write them, if asked."""
    from pipeline.analysis.shared.small import framed

    assert job.tables is not None
    tables = job.tables(options, capture)
    shown: dict[str, Any] = {}
    texts: list[str] = []
    tell = print if job.verdict is None else texts.append
    for table, found in zip(tables, collected(tables), strict=True):
        rows = [row.asDict(recursive=True) for row in found]
        shown[table.name] = [named(row, capture.names) for row in rows]
        if not options.json:
            tell(titled(table.title, rows, capture.names))
        if options.parquet:
            frame = framed(capture.spark, table.frame)
            place.write(frame, f"{place.absolute(options.parquet)}/{job.name}", table.name)
    verdict = job.verdict(shown) if job.verdict else None
    ran = capture.facts.ran(capture.tell.seconds)
    if options.json:
        first = {"verdict": verdict._asdict()} if verdict else {}
        print(objects.line({**first, **shown, "run": ran}, _plain))
        return _status(job, verdict, shown)
    if verdict:
        print(verdict.line, fill(job.legend, width()), "", *texts, sep="\n")
    elif not any(shown.values()):
        print(*of_wires_alone(capture.inventory()), sep="\n", end="")
    print(facts_line(ran))
    return _status(job, verdict, shown)


def of_wires_alone(taken: "Iterable[Row]") -> Iterator[str]:
    """Yield a line, and an empty one, if what a capture holds are frames on wires: jobs on messages of buses
    find nothing in a log of the field."""
    rows = Counter[int]()  # a newer recorder may have kinds that we do not know
    for row in taken:
        rows[row.kind] += row.rows
    if rows[Kind.WIRE] and not rows[Kind.FRAME]:
        what = f"No message of a bus is in it, only {amount(rows[Kind.WIRE], 'frame')} of wires"
        yield f"{what}: buscoupler signals reads values out of frames of CAN, by --dbc FILE\n"
        yield ""


def _status(job: Job, verdict: Verdict | None, shown: dict[str, Any]) -> int:
    return verdict.status if verdict else int(any(shown[name] for name in job.faults))


def _plain(value: Any) -> Any:
    return (
        bytes(value).decode(errors="backslashreplace") if isinstance(value, bytes | bytearray) else str(value)
    )
