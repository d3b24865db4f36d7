"""A TCP stream of frames, without SP, as a link (docs/wire/tcp.md)."""

from bridges.media.tcp.link import TcpFramesLink

__all__ = ["TcpFramesLink"]
