"""The syndication broker: a subscriber names producers by a query over their metadata (docs/syndication.md).

`device` is its record. `service` runs it: a `server` listens for the clients of `tcp`, and the `exchange`
takes what any `client` says, asks the state who is told what, and delivers what is `waiting`. Clients take
`turns` at much work. `bounds` has what clients may cost. On the other side, a `caller` is a client of ours,
and reads what it has `heard`.

`state`: producers, sets and subscriptions, without I/O. `wire`: the messages (docs/wire/syndication.md).
`query`: the language (docs/query.md). `storage`: metadata survive a restart. `buses`: frames and producers.
"""
