"""pyserial's own server of RFC 2217, whose port is a pty."""

import os
import select
import socket
from threading import Thread
from types import SimpleNamespace
from typing import Any

import serial
import serial.rfc2217


class _PtySerial(serial.Serial):  # type: ignore[misc, unused-ignore]
    """A serial port without modem lines, because a pty has none."""

    cts = dsr = ri = cd = False

    def _update_dtr_state(self) -> None:
        pass

    def _update_rts_state(self) -> None:
        pass


class Server:
    """pyserial's PortManager between one connection at a time and a serial port, as its example server."""

    def __init__(self, path: str) -> None:
        self._serial: Any = _PtySerial(path, timeout=0)
        self._listening: Any = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._stop, self._stopped = os.pipe()
        self._kick, self._kicked = os.pipe()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._listening, self._stop], (), ())
            if self._stop in ready:
                return
            connection, _ = self._listening.accept()
            with connection:
                if not self._talk(connection):
                    return

    def _talk(self, connection: socket.socket) -> bool:
        writer: Any = SimpleNamespace(write=connection.sendall)
        manager = serial.rfc2217.PortManager(self._serial, writer)
        while True:
            ready, _, _ = select.select([connection, self._serial, self._stop, self._kick], [], [])
            if self._stop in ready:
                return False
            if self._kick in ready:
                os.read(self._kick, 1)
                return True
            if self._serial in ready:
                connection.sendall(b"".join(manager.escape(self._serial.read(4096))))
            if connection in ready:
                data = connection.recv(4096)
                if not data:
                    return True
                self._write(b"".join(manager.filter(data)))

    def _write(self, data: bytes) -> None:
        while data:
            select.select([], [self._serial], [])
            data = data[os.write(self._serial.fileno(), data) :]

    def hang_up(self) -> None:
        os.write(self._kicked, b"x")

    def close(self) -> None:
        os.write(self._stopped, b"x")
        self._thread.join(10)
        self._serial.close()
        self._listening.close()
        for fd in (self._stop, self._stopped, self._kick, self._kicked):
            os.close(fd)
