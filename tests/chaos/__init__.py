"""Chaos in virtual time: a whole plant in one process, under many faults at once (docs/testing.md).

`clock` stands in for the machine's clock and must be first; `loops` runs the event loop of each program,
`hosts` are the machines and their network, `plant` has the topology and the wires, `stations` the
applications, `faults` what goes wrong, `laws` what must hold all the same, `trial` a run of one seed. `seeds`
is the program that a child process runs, `shrink` shortens a list of faults. `python -m tests.chaos` starts
it all.
"""
