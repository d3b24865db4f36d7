"""Names of media and protocols that other systems have, and what to write or do here. Pure."""

from typing import Final

_NOT_TRANSLATED: Final = "frames of {} are not translated: docs/coming-from.md says what crosses"
_BY_ID: Final = "frames of {} cross by their ids: write can, with protocol: {{raw: ...}} or {{dbc: ...}}"
_IDENTIFIED: Final = {
    "canopen": "CANopen", "j1939": "J1939", "devicenet": "DeviceNet", "nmea2000": "NMEA 2000",
    "isotp": "ISO-TP", "uds": "UDS", "obd": "OBD-II",
}  # fmt: skip
_MEDIUM: Final = "{} is no medium here: docs/add-a-medium.md says how to add one"
_PROTOCOLS: Final = {
    "opcua": "OPC UA", "s7": "S7",
    "profinet": "PROFINET", "profibus": "PROFIBUS", "ethercat": "EtherCAT", "bacnet": "BACnet", "knx": "KNX",
    "dnp3": "DNP3", "iec104": "IEC 104", "lin": "LIN", "mavlink": "MAVLink", "amqp": "AMQP",
    "coap": "CoAP", "zenoh": "Zenoh", "ros": "ROS", "dds": "DDS",
}  # fmt: skip
_MEDIA: Final = {
    "spi": "SPI", "lora": "LoRa",
    "lorawan": "LoRaWAN", "ble": "Bluetooth", "bluetooth": "Bluetooth", "usb": "USB", "onewire": "1-Wire",
}  # fmt: skip
_WRITE: Final = {
    "modbus": "write uart or tcp, with protocol: {modbus: ...}",
    "scpi": "write tcp or uart, with protocol: {queries: ...}",
    "elm327": "write uart, with protocol: {queries: ...}",
    "visa": "write tcp or uart, with protocol: {queries: ...}",
    "dbc": "write can, with protocol: {dbc: ...}",
    "nmea": "write uart, with protocol: {nmea: ...}", "gps": "write uart, with protocol: {nmea: ...}",
    **dict.fromkeys(("vedirect", "victron"), "write uart, with protocol: {vedirect: ...}"),
    **dict.fromkeys(("p1", "dsmr", "obis"), "write uart, with protocol: {p1: ...}"),
    "xbee": "write uart, with protocol: {xbee: ...}",
    "serial": "write uart", "tty": "write uart", "rs232": "write uart", "rs422": "write uart",
    "rs485": "write uart: {port: ..., rs485: {...}} in a topology", "modem": "write uart",
    "socketcan": "write can", "canfd": "write can, with fd: true", "vcan": "write can", "slcan": "write can",
    "zigbee": "write ieee802154, with a radio that Linux has as a network interface",
    "802154": "write ieee802154", "wpan": "write ieee802154",
    "mcast": "write multicast", "smbus": "write i2c", "socket": "write tcp or url", "nng": "write url",
    "nanomsg": "write url", "websocket": "write url, with ws:// or wss://", "unix": "write url, with ipc://",
    "sctp": "SCTP is no transport here: write tcp:// or tls+tcp://",
    "quic": "QUIC is no transport here: write tcp:// or tls+tcp://",
    "http": "a bus is dialled at tcp://, ws:// and others; http:// is for the status page",
    "zmq": "ZeroMQ is spoken by catalogs, proxies and their services alone: docs/dbp.md",
    "mqtt": "MQTT is a package of its own: pip install ./examples/medium-mqtt in a clone",
}  # fmt: skip
WORDS: Final = {
    **{word: _NOT_TRANSLATED.format(name) for word, name in _PROTOCOLS.items()},
    **{word: _BY_ID.format(name) for word, name in _IDENTIFIED.items()},
    **{word: _MEDIUM.format(name) for word, name in _MEDIA.items()},
    **_WRITE,
}
"""The words for what to write or do instead of a name that others use, by that name in small letters without
signs."""


def known_elsewhere(word: str) -> str:
    """Return `; ` and what to do for a name of another system; "" for any other word."""
    plain = "".join(letter for letter in word.lower() if letter.isalnum())
    forms = (plain, plain.removesuffix("s"), plain.removesuffix("tcp"), plain.removesuffix("rtu"))
    told = next((WORDS[form] for form in forms if form in WORDS), "")
    return f"; {told}" if told else ""
