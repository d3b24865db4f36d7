"""The makers of every link that the suite tests."""

from tests.conformance import datagrams, i2c_buses, serial_lines, simulated, streams

MAKERS = [
    *streams.MAKERS,
    *serial_lines.MAKERS,
    *datagrams.MAKERS,
    *i2c_buses.MAKERS,
    *simulated.MAKERS,
]
