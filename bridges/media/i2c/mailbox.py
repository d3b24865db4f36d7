"""The I2C mailbox: both ends as state machines (docs/wire/i2c.md; wire spec section 7).

`Controller` says which register access to make next and is told how it went; `Target` works on 64 bytes of
memory. Pure: bytes and time (`now`, seconds, monotonic) in, values out.
"""

from bridges.media.i2c.mailbox_controller import POLL, Access, Controller, MailState
from bridges.media.i2c.mailbox_segments import MEMORY_BYTES, Timing
from bridges.media.i2c.mailbox_target import Target

__all__ = [
    "MEMORY_BYTES",
    "POLL",
    "Access",
    "Controller",
    "MailState",
    "Target",
    "Timing",
]
