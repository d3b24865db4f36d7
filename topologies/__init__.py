"""The YAML model of a whole system: `load` reads it, `check` checks it, `show` writes it as text.

`document` parses the text into nodes with places, `variables` replaces those in values, and `loader` makes
the `model` from them; `choices` are values by gateway, and `kinds` records of several kinds. `findings` are
the faults. `checker` calls `cycles`, `returns` (of what devices say), `exclusive`, `addresses`, `failover`
and `budgets`, which use `filters`, and `messages` about those that cannot cross; `exposure` is about who is
let in. `reach` finds the bus at an address, `segments` the wire that each side of a bridge joins, `seats` the
sides of one bridge on one gateway, `ageing` the trunks that form rings, and `events` where events of gateways
go. `names` are those of its tokens. `needs` are what a gateway needs of its machine. `choosing` says which
gateway a machine is, by its host name. `reference` writes the page of all keys, `schema` the JSON Schema
for editors, and `writing` new files.
`drawing` is a picture, `layout` its places, `svg` its text; `status` is the record of a status page.
"""
