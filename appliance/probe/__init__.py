"""Test traffic: say and hear frames on any link (`send`, `recv`, `traffic`, `capture`).

An `endpoint` is a word that names a bus or one of the `media`; a `station` speaks and hears there.
`words` reads and prints messages, `pacing` keeps a rate, `replay` sends a capture. `values` prints those of
MessagePack (`query`).
"""
