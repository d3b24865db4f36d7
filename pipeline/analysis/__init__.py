"""The analysis of captures: DataFrames in and out, the rules they share, and explanations in plain
Python.

`audit`, `latency`, `rates`, `last`, `failovers`, `tokens`, `logs`, `quality` and `watch` are the jobs' own;
`watched` is what a watch has written. They share `frames` (rows that are frames), `inventory` (what is in a
capture), `expected` (where frames should arrive), `suspects` (that did not), `episodes` (of equal frames),
`events` (of candidates), `filters`, `sums`, `hops`, `clocks`, `trunks` (between buses), `ways` (over
bridges), `holes`, `absent` gateways, `stand_ins` (that send again), `quiet` spells (`silent` bridges, `gaps`
of segments) and `service`. `explain` names the
fault of a frame by its counts, `causes` finds what else was the matter, `labels` has the fault's final name,
and `verdict` sums up an audit.
"""
