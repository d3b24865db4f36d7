"""The benchmark of durable trunks: what its program hears, and a large journal in small."""

import time
from pathlib import Path

from benchmarks.durable import Hearing, measured_opening, message
from bus.wire.batch import from_payloads


def test_a_program_counts_each_number_and_its_delay() -> None:
    heard, now_ns = Hearing(), time.monotonic_ns()
    heard.send(from_payloads([message(0, now_ns), message(1, now_ns)]))
    heard.mark(3)
    heard.send(from_payloads([message(1, now_ns), message(3, now_ns - 5_000_000)]))
    assert (heard.count, heard.doubled, heard.seen.count(1)) == (4, 1, 3)
    assert heard.p99_ms() >= 5


def test_a_journal_is_made_and_opened_in_a_process_of_its_own(tmp_path: Path) -> None:
    size, opening = measured_opening(tmp_path, 0.02)
    assert "8,192 messages" in size
    assert "MiB at most" in opening
