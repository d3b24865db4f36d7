"""Wire formats, pure: bytes in, values out.

`frame` and `pattern` are those of TMQ, `notation` writes a pattern as one word, and `identifier` a token of
CAN. `envelope` goes before a frame on trunks (`timed` is the next one), `batch` travels inside the program.
`sp` cuts a peer's stream into batches, and so does `websocket`, after a `handshake`; `large` holds a long
message. `signed` are the records of trunks with keys. `x509` finds when certificates end, and `pem`
whether their files do.
"""
