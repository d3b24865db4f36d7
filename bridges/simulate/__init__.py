"""Simulated media for tests without hardware (docs/simulator.md): real links on simulated wires."""

from bridges.simulate.can import CanPort, CanWire, SimulatedCan, SimulatedCanBus
from bridges.simulate.loop import SimulatedLoop, SimulationError, run
from bridges.simulate.tcp import SimulatedDial, SimulatedListen, TcpEnd, TcpWire
from bridges.simulate.uart import SerialEnd, SerialLine, SimulatedUart
from bridges.simulate.wire import Event, Faults, Wire

__all__ = [
    "CanPort",
    "CanWire",
    "Event",
    "Faults",
    "SerialEnd",
    "SerialLine",
    "SimulatedCan",
    "SimulatedCanBus",
    "SimulatedDial",
    "SimulatedListen",
    "SimulatedLoop",
    "SimulatedUart",
    "SimulationError",
    "TcpEnd",
    "TcpWire",
    "Wire",
    "run",
]
