"""A TMQ network as a side of two redundant gateways, under load and faults.

`program` is a client, `rig` has the processes, and `trial` runs the load and the faults.
"""
