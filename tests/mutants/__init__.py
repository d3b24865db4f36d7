"""Mutants: small changes to the modules without I/O, which the tests must notice (`make mutants`).

`sites` finds what can be changed in a module, `plant` makes one change in a process, `nest` is the plugin of
pytest that tries many in one run, and `hunt` chooses mutants and tests. `explained.txt` has those that no
test can tell from the original, each with its reason.
"""
