"""The analysis of captures: DataFrames in and out, the rules they share, and explanations in plain
Python.

`audit`, `latency`, `rates`, `last`, `failovers`, `tokens`, `logs`, `quality` and `watch` are the jobs' own;
`watched` is what a watch has written. They share `frames` (rows that are frames), `inventory` (what is in a
capture), `expected` (where frames should arrive), `episodes` (of equal frames), `events` (of candidates),
`filters`, `sums`, `hops`, `clocks`, `trunks` (between buses), `ways` (over bridges), `gaps`, `silent`,
`holes` and `service`; `explain` names the cause of a fault, and `verdict` sums up an audit.
"""
