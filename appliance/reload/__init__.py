"""The reload of a running gateway: its file as it is now is applied, on SIGHUP and by `buscoupler reload`.

`reloader` reads the file and applies it, and `outcome` is what comes of that. `responder` does so for whoever
asks on a local socket, and `client` asks.
"""
