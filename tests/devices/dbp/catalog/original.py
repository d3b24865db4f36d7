"""What the published package 1.0.2 sends, recorded from it: frames without the identity."""

TIME = b"\xdf\x06\xd6N"
RECORDED_AT_S = 1795387240.0  # the float is up to 64 s beside it

REGISTRATION = [
    b"",
    b"UwU",
    TIME,
    b'{"name": "Rohan", "interfaces": {"router": {"ip": "127.0.0.1", "port": 5247}}, '
    b'"reg_time": "Sun Nov 22 22:40:38 2026", "topics": null}',
]
UPDATE = [b"", b"UoU", TIME, b'{"name": "Rohan", "topics": ["x"]}']
ALL = [b"", b"u_U", TIME, b""]
ONE = [b"", b"u_U", TIME, b"Rohan"]
OTHER = [b"", b"u_U", TIME, b"No"]
PONG = [b"", b"pong", TIME, b"Rohan"]
NO_HANDLER = [
    b"",
    b"Error: Invalid command type. Please register command callback with the server.",
    TIME,
    b"",
]

APPROVED = [b"", b"OwO", TIME, b""]
"""What its catalog replies, and its service takes."""
ACKNOWLEDGED = [b"", b"u.u", TIME, b""]
