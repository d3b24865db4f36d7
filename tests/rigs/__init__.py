"""Rigs that tests and benchmarks share: both may import `tests.rigs` and `tests.helpers`.

`planted` writes captures with planted faults. `takeovers` runs redundant gateways as real processes under
load and faults; `tmq` does so with a TMQ network as one side. Tests outside `tests/benchmarks` import nothing
of `benchmarks`.
"""
