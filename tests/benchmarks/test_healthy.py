"""Healthy runs of examples pass the audit: the short form of `benchmarks.healthy`."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.healthy import audited, run
from devices.child import settle
from pipeline.engine.choice import SAIL
from tests.appliance.examples import RUNNABLE
from tests.helpers import alone
from tests.pipeline.engines import BOTH

pytestmark = [pytest.mark.spark, pytest.mark.timeout(200)]


@pytest.mark.parametrize("where", BOTH)
async def test_a_healthy_run_passes_the_audit(where: tuple[str, ...], tmp_path: Path) -> None:
    """Each engine gets one of two examples: what they answer is compared in tests/pipeline/engine."""
    name = "mesh" if SAIL in where else "failover"
    [path] = [path for path in RUNNABLE if path.stem == name]
    said = await run(path, tmp_path, 3)
    assert await asyncio.to_thread(settle, 60)
    done = await asyncio.to_thread(audited, tmp_path, *where, env=alone())
    assert (done.returncode, said > 50) == (0, True), done.stdout + done.stderr
