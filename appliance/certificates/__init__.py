"""The certificates that gateways prove themselves by: what `buscoupler cert` makes and reads.

`making` signs, with the library `cryptography`, for the names that `hosts` reads. `files` writes a
certificate and its key, and `telling` says what is in a file.
"""
