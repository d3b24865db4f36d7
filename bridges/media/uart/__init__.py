"""Serial lines as links: a line for two, or a polled pair (docs/wire/uart.md).

`medium` is the record, `address` the names of ports. A `link` is a line for two, `rs485` a pair that a
`poll` shares; both stand on a `line`, which opens a `port` (over the network by `rfc2217`) and fills it
from an `outbox`. `codec` is the format, `echo` takes out what a line gives back.
"""
