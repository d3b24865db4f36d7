"""A TCP stream of frames, without SP (docs/wire/tcp.md).

`medium` is the record, `link` has the link, and `frames` has the format. `spoken` dials a peer with
a protocol of its own, and its `spoken_listener` listens for many.
"""
