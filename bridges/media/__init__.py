"""The media that a bridge can join: a folder each, and the table that finds the record of each by its
key.

A record (`medium.py` in the medium's folder) is all that the rest of the program reads of a medium. A
distribution of somebody else adds one by an entry point of the group `buscoupler.media`. `medium` is what
all records answer; `device` is shared by links that open one device; `shedding` has the queue that drops
by policy, `shed_pipe` puts one before links that have none. `sp` is a link to any bus by its URL.
"""

from typing import TYPE_CHECKING

from bus.kinds import Kinds

if TYPE_CHECKING:
    from bridges.media.medium import Medium

MEDIA: "Kinds[Medium]" = Kinds(
    "buscoupler.media",
    {
        "url": "bridges.media.sp.medium:Sp",
        "uart": "bridges.media.uart.medium:Uart",
        "can": "bridges.media.can.medium:Can",
        "i2c": "bridges.media.i2c.medium:I2c",
        "multicast": "bridges.media.multicast.medium:Multicast",
        "tcp": "bridges.media.tcp.medium:Tcp",
    },
)
