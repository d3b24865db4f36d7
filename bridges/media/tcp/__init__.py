"""A TCP stream of frames, without SP (docs/wire/tcp.md): `medium` is the record, `link` the link,
`frames` the format.
"""
