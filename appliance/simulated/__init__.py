"""A whole plant in virtual or real time, for users' own tests and `buscoupler simulate` (docs/simulator.md).

`media` puts the sides of a topology on simulated wires. `connections` knows who dials which bus or broker,
so that a test can cut that too. `members` are what a test has on a wire or a bus, and `plant` runs all
gateways with them; `real` does so in real time, on `wires` of the kernel. `listeners` note what alarms tell
people. `scenario` runs what is `stated`, traffic and faults, and tells the outcome. `plugin` is the fixture
of pytest, which imports the others when a test asks for it.
"""
