"""A TCP stream of frames, without SP (docs/wire/tcp.md).

`medium` is the record, `link` has the link, and `frames` has the format. `spoken` is for peers with
a protocol of their own.
"""
