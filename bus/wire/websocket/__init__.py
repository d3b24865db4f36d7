"""SP BUS over WebSocket (RFC 6455, docs/wire/websocket.md), pure: bytes in, values out.

`frames` is the layout and the encoder, `decoder` cuts a peer's stream into batches. `upgrade` is the HTTP
handshake at both ends, and `origins` decides which browser pages it lets in.
"""
