"""Clients of 2015 and another side, through two gateways: a short run of `benchmarks.tmq.side`."""

import os

import pytest

from tests.rigs.tmq.program import ENVIRONMENT
from tests.rigs.tmq.trial import NONE, trial

LEASE_MS = 600  # a machine that also runs other tests can stall for longer than the default 250
FRAMES = 200

needs_reference = pytest.mark.skipif(
    not os.environ.get(ENVIRONMENT), reason=f"{ENVIRONMENT} does not name a clone of the reference of 2015"
)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("setup", "fault", "reference"),
    [
        (("can", False, True), "kill", ""),
        (("uart", False, False), "link down", ""),
        (("bus", False, True), "freeze", ""),
        pytest.param(
            ("can", True, False),
            "kill",
            os.environ.get(ENVIRONMENT, ""),
            marks=needs_reference,
            id="reference",
        ),
    ],
)
async def test_nothing_is_lost_doubled_or_echoed(
    setup: tuple[str, bool, bool], fault: str, reference: str
) -> None:
    result = await trial(setup, FRAMES, [fault], 1, 100, print, LEASE_MS, reference)
    assert [outcome.fault for outcome in result.outcomes] == [NONE, fault]
    for outcome in result.outcomes:
        assert (outcome.lost, outcome.doubled, outcome.strays, outcome.note) == (0, 0, 0, ""), outcome
    assert result.outcomes[0].sent >= 2 * FRAMES
    assert not result.trouble
    assert sum("balanced" in line for line in result.ledgers) == 2, result.ledgers
