"""The proxy: services of one catalog are listed in another one, and reached, through one TLS connection.

`device` is its record and `service` runs it. Without I/O: `wire` has the frames between two proxies, and
`offers` says which services one offers, and which of those the other one takes. At the edge: `crossing` makes
the connection, `tunnel` carries streams over it, and `proxied` is a far service here.
"""
