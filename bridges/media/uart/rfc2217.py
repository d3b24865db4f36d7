"""The client of a serial port over Telnet (RFC 2217 COM-PORT-OPTION, RFC 854, 856), without I/O.

It turns bytes of the connection into bytes of the line; `replies` collects what must be sent to the server.
"""

import re
from struct import Struct

IAC = b"\xff"
_IAC, _DONT, _DO, _WONT, _WILL, _SB, _SE = 255, 254, 253, 252, 251, 250, 240
_BINARY, _ECHO, _SGA, _COM_PORT = 0, 1, 3, 44
_WE_OFFER = frozenset((_BINARY, _SGA, _COM_PORT))
_WE_ALLOW = frozenset((_BINARY, _ECHO, _SGA, _COM_PORT))
_BAUD, _DATA, _PARITY, _STOP, _CONTROL, _PURGE = 1, 2, 3, 4, 5, 12
_SERVER = 100  # a server adds it to a command in its answer
_SUSPEND, _RESUME = 108, 109
_PARITIES = {"N": 1, "O": 2, "E": 3, "M": 4, "S": 5}
_STOPS = {1: 1, 2: 2, 1.5: 3}
_NO_FLOW, _SOFTWARE_FLOW, _HARDWARE_FLOW = 1, 2, 3
_DTR_ON, _DTR_OFF, _RTS_ON, _RTS_OFF = 8, 9, 11, 12
_PURGE_BOTH = 3
_NAMES = {_BAUD: "baud rate", _DATA: "data bits", _PARITY: "parity", _STOP: "stop bits"}
_COMMAND_BYTES_MAX = 512
_SUBNEGOTIATION = re.compile(rb"\xff\xfa(?:[^\xff]|\xff\xff)*+\xff[^\xff]")
_VALUE_BYTES_MAX = 4
_REPLY_BYTES_MAX = 4096
_U32 = Struct(">I")


def escape(data: bytes) -> bytes:
    """Return the bytes to send over the connection for `data` of the line."""
    return data.replace(IAC, b"\xff\xff")


class Client:
    """The Telnet state of a connection: it negotiates settings and removes commands from the stream.

    `ready`: the server has agreed to the settings. `refused`: why it never will; "" if it may. `suspended`:
    it asked for a pause. `dtr` and `rts` are set only if they are given. No input raises; an unfinished
    command is held up to 512 bytes, and then skipped.
    """

    def __init__(
        self,
        baud: int,
        parity: str = "N",
        stopbits: float = 1,
        rtscts: bool = False,
        *,
        data_bits: int = 8,
        xonxoff: bool = False,
        dtr: bool | None = None,
        rts: bool | None = None,
    ) -> None:
        self._wanted = {
            _BAUD: _U32.pack(baud),
            _DATA: bytes((data_bits,)),
            _PARITY: bytes((_PARITIES[parity],)),
            _STOP: bytes((_STOPS[stopbits],)),
        }
        self._lines = [_HARDWARE_FLOW if rtscts else _SOFTWARE_FLOW if xonxoff else _NO_FLOW]
        self._lines += [] if dtr is None else [_DTR_ON if dtr else _DTR_OFF]
        self._lines += [] if rts is None else [_RTS_ON if rts else _RTS_OFF]
        self._unsettled = set(self._wanted)
        self._we, self._they = set(_WE_OFFER), {_BINARY, _SGA}  # options requested or accepted, by side
        self._agreed: set[int] = set()
        self._held = b""
        self.refused = ""
        self.suspended = False
        self.replies = bytearray()
        for option in sorted(self._we):
            self._say(_WILL, option)
        for option in sorted(self._they):
            self._say(_DO, option)

    @property
    def ready(self) -> bool:
        return not self._unsettled and _BINARY in self._agreed and not self.refused

    def feed(self, data: bytes) -> bytes:
        """Return the bytes of the line in `data` from the connection. Commands are obeyed."""
        data = self._held + data
        self._held = b""
        parts, position = [], 0
        while (at := data.find(IAC, position)) >= 0:
            parts.append(data[position:at])
            size = self._command_bytes(data, at)
            if not size:
                self._held = data[at:]
                return b"".join(parts)
            if data[at + 1] == _IAC:
                parts.append(IAC)
            elif size < _COMMAND_BYTES_MAX:
                self._obey(data[at + 1 : at + size])
            position = at + size
        return b"".join((*parts, data[position:]))

    def _command_bytes(self, data: bytes, at: int) -> int:
        """Return the length of the command at `at`; 0 if it is incomplete."""
        left = len(data) - at
        if left < 2:
            return 0
        if data[at + 1] == _SB:
            return self._subnegotiation_bytes(data, at)
        size = 3 if _WILL <= data[at + 1] <= _DONT else 2
        return size if left >= size else 0

    def _subnegotiation_bytes(self, data: bytes, at: int) -> int:
        """Return the length as `_command_bytes` does; the most for one that does not end so soon."""
        stop = at + _COMMAND_BYTES_MAX
        if whole := _SUBNEGOTIATION.match(data, at, stop):
            return whole.end() - at
        return _COMMAND_BYTES_MAX if len(data) >= stop else 0

    def _obey(self, command: bytes) -> None:
        verb = command[0]
        if verb == _SB:
            self._answered(command[1:-2].replace(b"\xff\xff", IAC))
        elif verb in (_DO, _DONT):
            self._asked_of_us(verb == _DO, command[1])
        elif verb in (_WILL, _WONT):
            self._offered(verb == _WILL, command[1])

    def _asked_of_us(self, wanted: bool, option: int) -> None:
        if wanted and option in _WE_OFFER:
            if option not in self._we:
                self._we.add(option)
                self._say(_WILL, option)
            self._agree(option)
        elif wanted:
            self._say(_WONT, option)
        elif option in self._we:
            self._we.discard(option)
            self._say(_WONT, option)
            if option in (_BINARY, _COM_PORT):
                self.refused = "the server refuses " + ("binary mode" if option == _BINARY else "RFC 2217")

    def _agree(self, option: int) -> None:
        if option not in self._agreed and option == _COM_PORT:
            for command, value in self._wanted.items():
                self._command(command, value)
            for line in self._lines:
                self._command(_CONTROL, bytes((line,)))
            self._command(_PURGE, bytes((_PURGE_BOTH,)))
        self._agreed.add(option)

    def _offered(self, will: bool, option: int) -> None:
        if will and option not in self._they:
            if option in _WE_ALLOW:
                self._they.add(option)
            self._say(_DO if option in _WE_ALLOW else _DONT, option)
        elif not will and option in self._they:
            self._they.discard(option)
            self._say(_DONT, option)

    def _answered(self, body: bytes) -> None:
        if len(body) < 2 or body[0] != _COM_PORT:
            return
        command, value = body[1], body[2:]
        if command in (_SUSPEND, _RESUME):
            self.suspended = command == _SUSPEND
        elif command - _SERVER in self._unsettled:
            self._settle(command - _SERVER, value)

    def _settle(self, command: int, value: bytes) -> None:
        if value == self._wanted[command]:
            self._unsettled.discard(command)
        else:
            got = int.from_bytes(value[:_VALUE_BYTES_MAX], "big")
            wanted = int.from_bytes(self._wanted[command], "big")
            self.refused = f"the server set {_NAMES[command]} {got}, not {wanted}"

    def _say(self, verb: int, option: int) -> None:
        self._reply(bytes((_IAC, verb, option)))

    def _command(self, command: int, value: bytes) -> None:
        body = bytes((_COM_PORT, command)) + value
        self._reply(bytes((_IAC, _SB)) + escape(body) + bytes((_IAC, _SE)))

    def _reply(self, data: bytes) -> None:
        """Queue a reply, up to a bound: a server may ask without end and never read an answer."""
        if len(self.replies) + len(data) <= _REPLY_BYTES_MAX:
            self.replies += data
