"""A UDP multicast group as a link (docs/wire/multicast.md)."""
