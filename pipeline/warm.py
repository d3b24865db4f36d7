"""`buscoupler warm`: run a small audit once, and keep the classes that it loaded as an archive for the
next starts."""

import argparse
import os
import tempfile
from pathlib import Path

from pipeline import capture, java, session
from pipeline.errors import PipelineError
from pipeline.jvm import Jvm, archive, cache_directory
from pipeline.tables import Progress


def run(options: argparse.Namespace) -> int:
    """0; the archive is for this Java and this Spark, and is made again by running this again."""
    tell = Progress(quiet=False)
    found = java.find()
    target = archive(found)
    try:
        cache_directory().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PipelineError(f"{cache_directory()}: {error.strerror}") from None
    tell(f"Java {found.version} at {found.home}")
    partial = target.with_suffix(f".{os.getpid()}.tmp")
    try:
        _record(options, Jvm(found, options.memory, quick=True, record=partial))
        if not partial.exists():
            raise PipelineError(
                "Java made no class archive: there may be no room for it, or it does not support them"
            )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    tell(f"{target} ({target.stat().st_size / 1e6:.0f} MB): Spark starts faster from now on")
    return 0


def _record(options: argparse.Namespace, jvm: Jvm) -> None:
    """Everything that jobs usually touch: read, aggregate, join, windows, write."""
    options.master = options.remote = None
    with tempfile.TemporaryDirectory() as name, session.session(options, jvm) as spark:
        from pipeline.audit import audit
        from pipeline.failovers import failovers
        from pipeline.rates import by_prefix, rates
        from pipeline.sample import write

        write(Path(name))
        rows = capture.read(spark, capture.root(name))
        found = audit(rows)
        for table in (
            found.totals,
            found.summary,
            found.ledger,
            found.capture,
            by_prefix(rates(rows)),
            failovers(rows),
        ):
            table.collect()
        found.findings.write.parquet(f"{name}/out")
