"""The journal: messages on disk until others have them. Blocking files, no thread, no asyncio.

`journal` is the one to use; `groups` are what goes in and comes out. `ranges` are sets of numbers, `record`
and `segment` the formats. `files` is the layer below, over the operating system. `identity` says whose
journal a directory is, `consumers` know who has what, and `memory` what came from other journals, both as
`notes`. `store` keeps the segments, `removal` removes them, with the room of a `reserve` on a full disk,
`reading` finds records in them, and `scan` looks through one. `verify` looks at a directory without its lock,
and `summary` at less of it. `errors` are what all of it raises.
"""
