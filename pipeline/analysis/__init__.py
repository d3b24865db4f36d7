"""The analysis of captures: DataFrames in and out, the rules they share, and explanations in plain
Python.

The package `audit` is the audit's own. `latency`, `rates`, `last`, `failovers`, `tokens`, `logs`, `quality`
and `watch` are those of the other jobs; `watched` is what a watch has written. They share `frames` (rows that
are frames), `inventory` (what is in a capture), `expected` (where frames should arrive), `explain` (what a
frame's counts mean), `events` (of candidates), `filters`, `sums`, `hops`, `clocks`, `trunks` (between buses),
`holes` (in a capture) and `service`.
"""
