"""The proxy: it lists services of one catalog in another, and carries their streams over one TLS link.

`device` is its record and `service` runs it. Without I/O: `wire` has the frames between two proxies, and
`offers` chooses the services that one proxy offers, and those that the other one takes. At the edge:
`crossing` makes the connection, `tunnel` carries streams over it, and `proxied` is a service of the far side
on this one.
"""
