"""The connections of a topology: which addresses, wires and parts meet.

`reach` finds the bus or broker at an address, and the addresses of buses and brokers. `segments` draws the
map, a `Wiring`, once for a topology: the wire that each side of a bridge joins, and the links between
buses, bridges and wires. `graph` searches it, and `rings` finds the trunks that form rings. `filters`
decides which frames cross a side, `flow` what they are called behind it, `keys` which keys are in force,
`events` where frames of gateways themselves go, `durable` for whom a bus keeps a journal, `alarms` who
judges what, and `ids` name parts.
"""
