"""Open, non-blocking serial ports: device paths and hwgrep://, which pyserial opens, and those of servers."""

import os
import termios
from collections.abc import Mapping
from typing import Any, Protocol

from bridges.media.draining import close_drained, queued_bytes
from bridges.media.hangup import has_ended
from bridges.media.uart.medium import Uart
from bus.machine.holders import holding_words

_READ_BYTES = 4096  # in one turn of the loop; no tty holds more for its reader


class Port(Protocol):
    """An open port. `read` and `write` return at once and raise `OSError` when the port is gone."""

    def fileno(self) -> int: ...
    def read(self) -> bytes:
        """Return the bytes that have arrived; may be empty. Call it when the descriptor is readable."""

    def write(self, data: bytes) -> int:
        """Write as much of `data` as fits. Return the number of bytes; 0 if the driver is full."""

    def waiting(self) -> int:
        """Return the number of bytes in the driver that are not sent yet; 0 if that is unknown."""

    def close(self) -> None:
        """Close the port without blocking. Never raises."""


def open_port(options: Uart, transceiver: Mapping[str, Any] | None, late_s: float = 0.0) -> Port:
    """Open a port. Blocks; raises any error of opening. `hwgrep://` searches for its device each time.

    `late_s` is that of `remote.SocketPort`.
    """
    if options.port.startswith(("socket://", "rfc2217://")):
        from bridges.media.uart.remote import open_remote  # late: most ports are of this machine

        return open_remote(options, late_s)
    return DevicePort(_open_device(options, options.transceiver if transceiver is None else transceiver))


def _open_device(options: Uart, transceiver: Mapping[str, Any] | None) -> Any:
    import serial.rs485

    path: str = options.port
    try:
        device = serial.serial_for_url(
            options.port,
            options.baud,
            do_not_open=True,
            exclusive=options.exclusive,
            bytesize=options.data_bits,
            parity=options.parity,
            stopbits=options.stopbits,
            rtscts=options.rtscts,
            xonxoff=options.xonxoff,
            timeout=0,
            write_timeout=0,
        )
        path = device.port or path
        _set_lines(device, options)
        device.open()
    except OSError as error:
        if isinstance(error.__context__, termios.error):
            raise OSError(f"{path} is no serial line: name one, as /dev/ttyUSB0") from error
        raise OSError(holding_words(error, path)) from error
    if transceiver is not None:
        try:
            device.rs485_mode = serial.rs485.RS485Settings(**transceiver)
        except BaseException as error:
            device.close()
            why = f"the driver does not switch an RS-485 transceiver: {error}"
            raise OSError(f"{why}: leave rs485 out if the adapter does it by itself") from error
    return device


def _set_lines(device: Any, options: Uart) -> None:
    """Have the opening set DTR and RTS as asked, or leave them: pyserial alone would raise both."""
    for level, name in ((options.dtr, "dtr"), (options.rts, "rts")):
        if level is None:
            setattr(device, f"_update_{name}_state", _leave_alone)
        else:
            setattr(device, name, level)


def _leave_alone() -> None:
    """Do nothing in place of what pyserial does to a line at opening."""


class DevicePort:
    """A tty that pyserial opened."""

    def __init__(self, device: Any) -> None:
        self._device, self._fd = device, device.fileno()

    def fileno(self) -> int:
        return int(self._fd)

    def read(self) -> bytes:
        """Return what has arrived; nothing if another program took it, which is not the end of a tty."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return b""
        if not data and has_ended(self._fd):
            raise OSError("the device has gone")
        return data

    def write(self, data: bytes) -> int:
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0

    def waiting(self) -> int:
        return queued_bytes(self._fd)

    def close(self) -> None:
        close_drained(self._fd, self._device.close)
