"""Captures with planted faults, from a seed: a job must find exactly these. `benchmarks.planted` writes them.

Each gateway has its own bus, and a bridge from it to one trunk that all share. The first bus has a second
gateway, which takes over when the first one's bridge dies. A frame makes 2 + 2 * gateways rows: on its bus,
in its bridge, on the trunk, in every other bridge and on every other bus.

`plan` says what to plant and what was, `schedule` when, `maker` has the course of the frames, `frames` what
they are, `files` their rows, and `names` the file of names.
"""

from pathlib import Path

from tests.rigs.planted.maker import Maker
from tests.rigs.planted.plan import CAPTURES, ENVELOPES, HEARTBEAT, KINDS, START_NS, Plan, Truth, plan_of

__all__ = ["CAPTURES", "ENVELOPES", "HEARTBEAT", "KINDS", "START_NS", "Plan", "Truth", "generate", "plan_of"]


def generate(directory: Path, plan: Plan) -> Truth:
    """Write the capture under `directory`. Return what is in it."""
    return Maker(directory, plan).make()
