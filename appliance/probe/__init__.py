"""Test traffic: send and receive frames on any link (`send`, `recv`, `traffic`, `capture`).

An `endpoint` is a word that names a bus or one of the `media`, perhaps with a protocol that is `spoken`
there; a `station` sends and receives there.
`words` reads and prints messages, `pacing` keeps a rate, `replay` sends a capture, of CAN also the frames
as they were (`raw`); `live` asks before frames go to a real wire. `cars` sends the messages of a database.
`files` takes files of the field into a capture, and out. `listening` hears what a device speaks that nobody
has described. `values` prints values of MessagePack (`query`).
"""
