"""Every link that the suite runs over."""

from tests.conformance import simulated, streams

MAKERS = [*streams.MAKERS, *simulated.MAKERS]
