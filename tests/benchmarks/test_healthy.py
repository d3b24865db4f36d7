"""Healthy runs of examples pass the audit: the short form of `benchmarks.healthy`."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.healthy import audited, run
from devices.child import settle
from tests.appliance.examples import RUNNABLE
from tests.helpers import alone
from tests.pipeline.engines import QUICK

pytestmark = [pytest.mark.spark, pytest.mark.timeout(200)]


@pytest.mark.parametrize("name", ["mesh", "failover"])
async def test_a_healthy_run_passes_the_audit(name: str, tmp_path: Path) -> None:
    [path] = [path for path in RUNNABLE if path.stem == name]
    said = await run(path, tmp_path, 3)
    assert await asyncio.to_thread(settle, 60)
    done = await asyncio.to_thread(audited, tmp_path, *QUICK, env=alone())
    assert (done.returncode, said > 50) == (0, True), done.stdout + done.stderr
