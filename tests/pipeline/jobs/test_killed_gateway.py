"""A gateway is killed in its first seconds, with its bus, bridge, broker and recorder: what the audit of both
gateways says is what a listener at the other bus received.

Frames from before the trunk between the buses is up have an envelope from each gateway; how many these are
differs (tests/pipeline/analysis/test_failover_copies.py has them by hand).
"""

import signal
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("can")
pytest.importorskip("pysail")

from tests.pipeline.pair import Pair, payload
from tests.pipeline.processes import audited, stop

pytestmark = pytest.mark.timeout(120)

SENT, KILL_AFTER = 300, 40


def test_the_audit_counts_what_the_listener_received(tmp_path: Path) -> None:
    with ExitStack() as stack:
        pair = Pair(tmp_path, stack)
        first, second = pair.gateway("gw-a"), pair.gateway("gw-b")
        listener = pair.listener()
        assert listener.stdout
        options = ["--rate", "100", "--count", str(SENT), "--pattern", "motor"]
        traffic = pair.start("traffic", pair.wire, *options)
        heard = [listener.stdout.readline() for _ in range(KILL_AFTER)]
        first.kill()
        first.wait()
        traffic.communicate(timeout=60)
        stop(pair.gateway("gw-a"))  # it finishes the file of the run that was killed
        stop(second)
        listener.send_signal(signal.SIGINT)
        heard += listener.stdout
    assert max(Counter(map(payload, heard)).values()) == 1
    found = audited(pair.capture, "--engine", "sail")
    counts = {(row["kind"], row["hub"]): row["count"] for row in found["summary"]}
    assert found["totals"][0]["frames"] == SENT
    # Before the trunk was up, and too old then.
    assert counts.pop(("lost", "bus hall-b"), 0) == SENT - len(heard)
    assert SENT // 2 < counts.pop(("not captured", "bus hall-a")) < SENT
    assert counts == {}
    assert found["status"] == 1
