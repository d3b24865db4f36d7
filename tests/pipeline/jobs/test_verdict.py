"""A real gateway whose CAN side conflates: what the audit says first, and the report."""

import signal
import subprocess
from pathlib import Path
from random import randint

import pytest

from tests.helpers.ports import free_port
from tests.pipeline.engines import QUICK
from tests.pipeline.processes import COMMAND, Done, in_turn

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SENT = 800
TEXT = """
name: conflated
gateways: {{gw: {{address: 127.0.0.1}}}}
buses: {{plant: {{on: gw, listen: "tcp://127.0.0.1:{port}"}}}}
bridges:
  field:
    on: gw
    join:
      - bus: plant
      - can: {{interface: udp_multicast, channel: 239.74.163.2, node: 1, options: {{port: {can}}}}}
        shed: {{policy: conflate, rate: 100}}
devices: {{tap: {{on: gw, tap: [plant, field], directory: "{directory}", yields: false}}}}
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pyarrow")
    pytest.importorskip("can")
    home = tmp_path_factory.mktemp("conflated")
    port, file = free_port(), home / "conflated.yaml"
    file.write_text(TEXT.format(port=port, can=randint(43000, 47999), directory=home / "capture"))
    with subprocess.Popen([*COMMAND, "run", str(file)], stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout
        assert "runs" in gateway.stdout.readline()
        url = f"tcp://127.0.0.1:{port}"
        traffic = [*COMMAND, "traffic", url, "--rate", "1000", "--count", str(SENT), "--pattern", "motor"]
        subprocess.run(traffic, check=True, capture_output=True)
        gateway.send_signal(signal.SIGINT)
        gateway.communicate(timeout=30)
    return home / "capture"


@pytest.fixture(scope="module")
def done(capture: Path) -> list[Done]:
    """The audit as JSON and as text, and the report."""
    asked = (
        ["audit", str(capture), "--json"],
        ["audit", str(capture)],
        ["report", str(capture), "-o", page(capture)],
    )
    return in_turn(*([*words, "-q", *QUICK] for words in asked))


def page(capture: Path) -> str:
    return str(capture.parent / "r.html")


def test_what_a_policy_dropped_is_said_first(done: list[Done]) -> None:
    audit, *_ = done
    found = audit.tables
    (conflated,) = [row["count"] for row in found["ledger"] if row["reason"] == "conflated"]
    assert conflated > SENT // 2
    assert found["summary"] == []
    assert found["verdict"] == {
        "color": "amber", "status": audit.status,
        "text": f"{SENT} frames entered, all handed on once to every segment that their kind reaches; "
        f"{conflated} then dropped in queues ({conflated} conflated), all by policy",
    }  # fmt: skip
    assert audit.status == 0


def test_the_first_line_is_the_verdict_and_the_second_says_what_counts_mean(done: list[Done]) -> None:
    _, audit, _ = done
    first, second, *_ = audit.out.splitlines()
    assert first.startswith(f"Amber: {SENT} frames entered, all handed on once")
    assert second.startswith("Frames, and messages that are no frames with them, count once")


def test_the_report_has_the_same_verdict(capture: Path, done: list[Done]) -> None:
    *_, report = done
    assert report.out.startswith("Amber: ")
    verdict = report.out.strip().removeprefix("Amber: ").rstrip(".")
    assert f'<div class="verdict amber">Amber: {verdict}.</div>' in Path(page(capture)).read_text()
