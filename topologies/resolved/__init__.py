"""What each part of a gateway needs of the topology, worked out into records.

`sides` are those of bridges: where each leads. `ranks` are who sends first there.
"""
