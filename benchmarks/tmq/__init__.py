"""TMQ from one publisher to one subscriber: `program` is one end of it, `rig` has the processes.

`side` measures a TMQ network as a side of a bridge.
"""
