"""Simulated media for tests without hardware: the real links on simulated wires (docs/simulator.md)."""

from bridges.simulate.can import CanWire, SimulatedCan
from bridges.simulate.i2c import I2cTarget, I2cWire, SimulatedI2c
from bridges.simulate.ieee802154 import RadioWire, SimulatedRadio
from bridges.simulate.loop import SimulatedLoop, SimulationError, run
from bridges.simulate.multicast import MulticastWire, SimulatedMulticast
from bridges.simulate.rs485 import Rs485Node, SimulatedRs485, rs485_node
from bridges.simulate.tcp import TcpWire
from bridges.simulate.uart import SerialLine, SimulatedUart
from bridges.simulate.wire import Event, Faults

__all__ = [
    "CanWire",
    "Event",
    "Faults",
    "I2cTarget",
    "I2cWire",
    "MulticastWire",
    "RadioWire",
    "Rs485Node",
    "SerialLine",
    "SimulatedCan",
    "SimulatedI2c",
    "SimulatedLoop",
    "SimulatedMulticast",
    "SimulatedRadio",
    "SimulatedRs485",
    "SimulatedUart",
    "SimulationError",
    "TcpWire",
    "rs485_node",
    "run",
]
