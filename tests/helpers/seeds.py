"""The seed of what tests draw anew in each run."""

import os
import zlib
from random import SystemRandom

SEED = int(
    os.environ.get("FUZZ_SEED")
    or zlib.crc32(os.environ.get("PYTEST_XDIST_TESTRUNUID", "").encode())
    or SystemRandom().randrange(1 << 32)
)
"""That of the environment, as in CI, where only a change may fail a test; or else one for all workers."""
