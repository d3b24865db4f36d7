"""The protocols that the devices of a side may speak: a module or a folder for each, and a table of them.

A protocol turns the items of a wire (`bridges/items.py`) into TMQ frames, and frames into items. `protocol`
has the base class of their records, `translator` that of what does the work, without I/O; `rows` and `values`
have the settings of values, `delimited` cuts bytes at a delimiter, `endings` guesses at others, `blocks`
gathers lines with one check over all of them, `crc16` is such a check, and `selection` has sets of CAN
identifiers. For devices that are asked, `asking` has the settings, `asker` asks by a `line`, and `commands`
are what is written. Another distribution can add a protocol with an entry point of `buscoupler.protocols`
(docs/add-a-protocol.md).
"""

from typing import TYPE_CHECKING

from bus.kinds import Kinds

if TYPE_CHECKING:
    from bridges.protocols.protocol import Protocol

PROTOCOLS: "Kinds[Protocol]" = Kinds(
    "buscoupler.protocols",
    {
        "tmq": "bridges.protocols.tmq:TmqProtocol",
        "registers": "bridges.protocols.registers.protocol:Registers",
        "modbus": "bridges.protocols.modbus.protocol:Modbus",
        "queries": "bridges.protocols.queries.protocol:Queries",
        "lines": "bridges.protocols.lines.protocol:Lines",
        "nmea": "bridges.protocols.nmea.protocol:Nmea",
        "vedirect": "bridges.protocols.vedirect.protocol:VeDirect",
        "p1": "bridges.protocols.p1.protocol:P1",
        "jsonl": "bridges.protocols.jsonl.protocol:JsonLines",
        "slip": "bridges.protocols.slip.protocol:Slip",
        "xbee": "bridges.protocols.xbee.protocol:Xbee",
        "bytes": "bridges.protocols.bytes.protocol:Bytes",
        "dbc": "bridges.protocols.dbc.protocol:Dbc",
        "raw": "bridges.protocols.raw.protocol:Raw",
        "cannelloni": "bridges.protocols.cannelloni.protocol:Cannelloni",
    },
)
