"""The syndication broker: a subscriber names producers by a query over their metadata (docs/syndication.md).

`device` is its record. `service` runs it: a `server` listens for the clients of `tcp`. The `exchange` takes
the messages of each `client`, asks the state which clients get which messages, and delivers what is
`waiting`. Clients with much work take `turns`. `bounds` limits what clients may cost. On the other side, a
`caller` is a client for programs; `answers` reads what a broker sends to it.

`state`: producers, sets and subscriptions, without I/O. `wire`: the messages (docs/wire/syndication.md).
`query`: the language (docs/query.md). `storage`: metadata survive a restart. `buses`: frames and producers.
"""
