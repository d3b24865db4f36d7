"""Mutants: small changes to the modules without I/O, which the tests must notice (`make mutants`).

`sites` finds what can be changed in a module, `plant` puts one change into a run of pytest, `hunt` runs the
tests that concern the module for each of them. `explained.txt` has the mutants that no test can tell from the
original, each with its reason.
"""
