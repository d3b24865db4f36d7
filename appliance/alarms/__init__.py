"""The alarms of a gateway: what the topology states is judged, told to people, and known over takeovers.

`conditions` judge values and their absence, `states` are what gateways exchange, and `book` has both for one
alarm: all pure. `announcement` has the frames on buses, which `ears` hear and say, and `links` the values of
links. `watch` composes them for a process; `of_process` makes it where there are alarms. `telling` gives each
`notice` to `outlets`. `keeping` is the file of states over a restart. `asking` is the local socket for
acknowledging, and `rules` makes those of Prometheus.
"""
