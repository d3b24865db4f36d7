"""The syndication broker: a subscriber names producers by a query over their metadata (docs/syndication.md).

`device` is its record. `service` runs it: a `server` listens for the clients of `tcp`, and the `exchange`
takes what any `client` says, asks the `book` who is told what, and delivers what is `waiting`. Much work is
done in `steps`, and clients take `turns` at it. The book has no I/O (docs/wire/syndication.md): `producers`
remembers metadata; `standing` has the set of each query, and the producers in it; `selections` have the
different values of a key in such a set; `sets` makes and changes both; `bounds` has what clients may cost.
`walk` finds where MessagePack objects end, `heads` what a client repeats; a `cutter` cuts its stream into
the messages of `wire`, which also packs the answers. A `memory` ends with age, and survives restarts: a
`store` writes to a `database` in the thread of a `worker`. On `buses`, `rules` say what frames mean: an
`intake` makes publications of frames by `codecs`, an `outlet` frames of publications. `query` is the
language (docs/query.md). On the other side, a `caller` is a client of ours, and reads what it has `heard`.
"""
