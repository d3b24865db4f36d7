"""Signals: the values over time in what was captured, decoded by whole batches.

`places` chooses the rows that say each value once, and `databases` reads what CAN messages mean. `reader`
turns a batch of rows, by its `lists` of tokens, into `blocks`, each a series of one signal that is `wanted`:
CAN frames by the kernel (`bridges.protocols.dbc.columns`), other data by their `forms` (text with
`numerals`, number, JSON, struct, `nmea`). `work` is done with blocks for each piece of a capture: long rows,
sums, windows of time; `episodes` are gaps and runs out of range. `table` writes files, and `output` puts
them in place, `logged` in a Delta log. `pieces` spreads work over the workers of Spark, or over processes
where the engine runs no Python.
`conditions` are over several signals, and `ends` of names are what a command knows signals by.
"""
