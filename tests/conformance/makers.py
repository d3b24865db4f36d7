"""The makers of every link that the suite tests."""

from tests.conformance import datagrams, i2c_buses, serial_lines, simulated, streams, tmq_brokers

MAKERS = [
    *streams.MAKERS,
    *serial_lines.MAKERS,
    *datagrams.MAKERS,
    *i2c_buses.MAKERS,
    *tmq_brokers.MAKERS,
    *simulated.MAKERS,
]
