"""A job on Spark that is interrupted: its status tells the signal, and no stack of Spark's is shown."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.input import sample
from tests.helpers import ROOT, alone
from tests.pipeline.engines import SHORT_LIVED, has_spark

LIMIT_S = 60


@pytest.mark.skipif(not has_spark(), reason="pip install -e '.[pipeline]'")
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("number", "where"), [(signal.SIGINT, ("--master", "local[1]")), (signal.SIGTERM, ("--no-resident",))]
)
def test_the_status_tells_the_signal_and_no_stack_is_shown(
    number: signal.Signals, where: tuple[str, ...], tmp_path: Path
) -> None:
    sample.write(tmp_path)
    words = [sys.executable, "-m", "buscoupler", "latency", str(tmp_path), *where]
    pipe, places = subprocess.PIPE, {"XDG_RUNTIME_DIR": str(tmp_path / "run")}
    with subprocess.Popen(
        words, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=alone() | SHORT_LIVED | places
    ) as job:
        try:
            assert job.stderr is not None
            while "files" not in (line := job.stderr.readline()):
                assert line
            job.send_signal(number)
            _, said = job.communicate(timeout=LIMIT_S)
        finally:
            job.kill()
    assert job.returncode == 128 + number
    assert "Traceback" not in said
    assert not (tmp_path / "run" / "buscoupler" / "spark").exists()  # no Spark stays behind
