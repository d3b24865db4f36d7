"""A CAN bus as a link: any python-can interface, and SocketCAN's own socket (docs/wire/can.md)."""
