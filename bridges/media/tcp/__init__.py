"""A TCP stream of frames, without SP, as a link (docs/wire/tcp.md)."""
