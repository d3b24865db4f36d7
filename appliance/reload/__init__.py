"""The change of a running gateway to its file as that is now, on SIGHUP and for `buscoupler reload`.

`reloader` reads the file and applies it, and `outcome` is what comes of that. `responder` does so for whoever
asks on a local socket, and `client` asks.
"""
