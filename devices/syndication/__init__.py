"""The syndication broker: a subscriber names producers by a query over their metadata.

So far it has the parts without I/O (docs/wire/syndication.md). `bounds` has what clients may cost. `walk`
finds where MessagePack objects end, `heads` what a client repeats; `wire` cuts its stream into messages.
`query` is the language (docs/query.md). `producers` remembers metadata; `standing` has the set of each query,
and the producers in it; `selections` have the different values of a key in such a set; a `book` joins them,
and says who is told what.
"""
