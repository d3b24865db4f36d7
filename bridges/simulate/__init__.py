"""Simulated media for tests without hardware: the real links on simulated wires (docs/simulator.md)."""

from bridges.simulate.can import CanPort, CanWire, SimulatedCan, SimulatedCanBus
from bridges.simulate.i2c import I2cTarget, I2cWire, SimulatedI2c
from bridges.simulate.loop import SimulatedLoop, SimulationError, run
from bridges.simulate.multicast import MulticastEnd, MulticastWire, SimulatedMulticast
from bridges.simulate.rs485 import Rs485Node, SimulatedRs485, rs485_node
from bridges.simulate.tcp import TcpEnd, TcpWire
from bridges.simulate.uart import SerialEnd, SerialLine, SimulatedUart
from bridges.simulate.wire import Event, Faults, Wire

__all__ = [
    "CanPort",
    "CanWire",
    "Event",
    "Faults",
    "I2cTarget",
    "I2cWire",
    "MulticastEnd",
    "MulticastWire",
    "Rs485Node",
    "SerialEnd",
    "SerialLine",
    "SimulatedCan",
    "SimulatedCanBus",
    "SimulatedI2c",
    "SimulatedLoop",
    "SimulatedMulticast",
    "SimulatedRs485",
    "SimulatedUart",
    "SimulationError",
    "TcpEnd",
    "TcpWire",
    "Wire",
    "rs485_node",
    "run",
]
