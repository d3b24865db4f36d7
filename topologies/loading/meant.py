"""Keys that other programs have for what another key is here: their letters say nothing of it. Pure."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from bus.text import closest, nearest

_SURE: Final = 0.7  # less, and a key that belongs elsewhere is that one
_LIKENESS: Final = 0.6  # less, and the word that is proposed is any other one
_MEANT: Final = (
    (("adapter", "driver", "iface", "bustype"), ("interface", "bus")),
    (("device", "dev", "tty", "path", "serial"), ("port", "bus", "channel")),
    (("channel", "adapter", "number"), ("bus",)),
    (("speed", "rate", "baudrate", "bps"), ("baud", "bitrate", "clock_hz")),
    (("portnumber", "port_number"), ("port",)),
    (("bytesize", "databits"), ("data_bits",)),
    (("terminator", "eol", "newline", "ending", "separator", "end"), ("delimiter",)),
    (("ip", "address", "hostname", "server", "ip_address", "addr"), ("host", "target", "register")),
    (("canid", "can_id", "node_id", "nodeid"), ("node",)),
    (("slave", "slave_id", "unit_id"), ("device", "devices", "target")),
    (("interval", "period", "cycle", "every", "scan_rate"), ("poll_ms",)),
    (("topic", "subject", "name", "tag"), ("pattern", "receive")),
    (("factor", "multiplier", "gain"), ("scale",)),
    (("datatype", "data_type", "format"), ("type",)),
    (("endian", "endianness", "byteorder", "byte_order", "word_order"), ("order",)),
)


def hinted(
    word: str, known: Collection[str], others: Iterable[str] = (), home: Callable[[], str] = lambda: ""
) -> str:
    """Return what `bus.text.nearest` does, for a key; what it means goes before what is written like it.

    `others` may be written here too, such as names of gateways. `home` says where else a key belongs that is
    much like none here.
    """
    plain = word.lower().replace("-", "_")
    for words, keys in _MEANT:
        if plain in words and (meant := next((key for key in keys if key in known), "")):
            return f'; did you mean "{meant}"?'
    here = (*known, *others)
    return ("" if closest(word, here, _SURE) else home()) or nearest(word, here, _LIKENESS)
