"""Serial lines as links: a line for two, or a polled pair (docs/wire/uart.md)."""
