"""The health of a gateway that runs: what is wrong with it now, and the watch that tells of each change.

`concerns` finds what is wrong with links, roles and recorders, and `watch` keeps the verdict on them, which
`appliance.status.health` defines.
"""
