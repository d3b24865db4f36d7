"""The connections of a topology: which addresses, wires and parts meet.

`reach` finds the bus or broker at an address, and the addresses of buses and brokers. `segments` finds the
wire that each side of a bridge joins, and the links between buses, bridges and wires; `rings` the trunks
that form rings. `filters` decides which frames cross a side, and `events` where those of gateways
themselves go.
"""
