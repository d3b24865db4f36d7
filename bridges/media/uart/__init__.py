"""Serial lines as links: a line for two, or a polled pair (docs/wire/uart.md).

`medium` is the record, `address` checks the names of ports. `link` is a line for two; `rs485` is a shared
pair, whose nodes `poll` asks in turn. Both are built on `line`, which opens a `port` (`remote` over the
network, with `rfc2217`; `ports` finds devices) and fills it from an `outbox`. `codec` is the format; `echo`
removes our own messages. `spoken` is for lines whose devices speak a protocol.
"""
