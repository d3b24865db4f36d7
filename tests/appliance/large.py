"""A gateway with so many bridges that it is looked at in several turns of the loop."""

from bus.steps import PORTION

LARGE = PORTION + 4


def topology(bridges: int, far: str = "") -> str:
    """Return a topology with so many bridges. `far` are other gateways."""
    side = "{tcp: {host: 127.0.0.1, port: 0, mode: listen}}"
    rows = (f"  b{n}: {{on: gw, join: [{{bus: hall}}, {side}]}}" for n in range(bridges))
    gateways = ", ".join(filter(None, ["gw: {address: 127.0.0.1, status: {serve: false}}", far]))
    head = f"name: many\ngateways: {{{gateways}}}\n"
    buses = 'buses: {hall: {on: gw, listen: "tcp://127.0.0.1:0"}}\n'
    return "\n".join([f"{head}{buses}bridges:", *rows, ""])
