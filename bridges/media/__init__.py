"""The media that a bridge can join: one folder for each, and a table that finds a medium's record by its key.

The rest of the program reads only the record (`medium.py` in the medium's folder). Another distribution can
add a medium with an entry point of the group `buscoupler.media`. `medium` is the base class of all records.
`device` is the base class of links that open one device. `arrivals` passes items from a driver's thread to
the event loop, `hangup` says whether a descriptor's other end has gone, and `draining` waits for what a tty
has not sent yet, within bounds. `shedding` has the queue that
drops messages by a policy; `shed_pipe` puts such a queue in front of links that have none. `spoken` is the
base of links whose devices speak a protocol, and `outgoing` their queue; `refusing` answers commands to a
device that is not there; `byte_stream` is the base of pipes over bytes, which hear their far end out;
`byte_echo` takes out the echo of a two-wire line, and `guess` says what input looks like, which `likeness`
tells people. `seals` are what trunks with keys put behind messages. `wire` shows taps what passes there.
`subject` is the record of a Cyphal subject. `selecting` lets libraries wait for large descriptors.
`rtnetlink` parses what the kernel reports about interfaces. `sp` is a link to any bus by its URL.
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
        "ieee802154": "bridges.media.ieee802154.medium:Ieee802154",
        "udp": "bridges.media.udp.medium:Udp",
        "tcp": "bridges.media.tcp.medium:Tcp",
        "tmq": "bridges.media.tmq.medium:Tmq",
    },
)
