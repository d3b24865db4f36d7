"""The wire of the syndication broker (docs/wire/syndication.md). Pure.

`walk` finds the ends of MessagePack objects, `heads` recognises publications that a client repeats. A
`cutter` cuts the stream of a client into `messages`, which also packs the answers.
"""
