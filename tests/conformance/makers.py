"""Every link that the suite runs over."""

from tests.conformance import media, simulated, streams

MAKERS = [*streams.MAKERS, *media.MAKERS, *simulated.MAKERS]
