"""The wire of the syndication broker (docs/wire/syndication.md). Pure.

`walk` finds where MessagePack objects end, `heads` what a client repeats. A `cutter` cuts the stream of a
client into `messages`, which also packs the answers.
"""
