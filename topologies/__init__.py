"""The YAML model of a whole system, and what follows from a topology file; beside it the example topologies.

`model` has the records of a file. `loading` reads one: `loading.loader.load`. `checks` search it for
faults: `checks.checker.check` returns all `findings`. `wiring` finds what is connected with what,
`resolved` what each part of a gateway needs, `names` those of tokens, and `quantities` those of values.
`picture` shows a topology, and `writing` generates the reference page, the JSON Schema and new files.
"""
