"""The media that a bridge can join: a folder each, and the table that finds each record by its key.

A record (`medium.py` in the medium's folder) is all that the rest of the program reads of a medium. Another
distribution adds one by an entry point of the group `buscoupler.media`. `medium` is the base of all records;
`device` the base of links that open one device; `arrivals` brings what a driver's thread reads to the loop;
`shedding` has the queue that drops by policy; `shed_pipe` puts one in front of links that have none. `sp` is
a link to any bus by its URL.
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
