"""A UDP multicast group as a link (docs/wire/multicast.md)."""

from bridges.media.multicast.link import MulticastLink

__all__ = ["MulticastLink"]
