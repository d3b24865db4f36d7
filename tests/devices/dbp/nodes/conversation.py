"""A service in the conversation with its catalog, and what the catalog says."""

from devices.dbp.catalog import wire
from devices.dbp.catalog.wire import Received
from devices.dbp.nodes.registering import Registration, Step

APPROVED = Received(wire.APPROVED, False)
BEAT = Received(wire.HEARTBEAT, False, ("Rohan",))
DISCONNECT = Received(wire.DISCONNECT, False)


def registration() -> Registration:
    return Registration("Rohan", {"interfaces": {"router": {"ip": "127.0.0.1", "port": 5247}}}, 1.0)


def listed(at_s: float = 0.0) -> Registration:
    made = registration()
    made.open(at_s)
    made.heard(APPROVED, at_s)
    return made


def registers(step: Step) -> bool:
    return step.renew and [command.word for command in step.say] == [wire.REGISTRATION]
