"""A node of a bus for microcontrollers: one file, no dependency, for MicroPython from 1.9 and CPython.

    from buscoupler_node import Node, Uart

    node = Node(Uart(uart))                   # or Rs485, Tcp, Mailbox
    node.subscribe(("fridge", "set"), lambda tokens, data: ...)
    node.publish(("fridge", "temp"), b"4.5")
    while True:
        node.poll()                           # as often as possible

A pattern is a name or a sequence of names; a name is text or a whole number from 0 to 4294967295. `()`
matches every frame. All links have `send(message) -> bool`, which never waits for a peer, and `poll()`,
which returns one received message or None. They count: `rejected` (invalid messages), `oversize` (longer
than `limit`, skipped), `unsent` (not sent: `send` returned False, or the connection was lost), `polls` (by
the gateway of a shared pair).

Copy the file to the board unchanged, or let `python -m bus.embedded.load` send the parts you need, without
comments: a BBC micro:bit has 9 KB of heap. See docs/microcontroller.md; formats: docs/wire/.
"""

# part: core
import struct
import time

PUB = 1

try:
    from binascii import crc32 as _crc32

    def crc(data):
        """Return the CRC-32/ISO-HDLC of `data`: 4 bytes, little-endian, as in all wire formats."""
        return struct.pack("<I", _crc32(data) & 0xFFFFFFFF)

except ImportError:  # by nibbles, in 16-bit halves: 32-bit ports store numbers from 2**30 on the heap
    _LOW = (0, 0x1064, 0x20C8, 0x30AC, 0x4190, 0x51F4, 0x6158, 0x713C)
    _LOW += (0x8320, 0x9344, 0xA3E8, 0xB38C, 0xC2B0, 0xD2D4, 0xE278, 0xF21C)
    _HIGH = (0, 0x1DB7, 0x3B6E, 0x26D9, 0x76DC, 0x6B6B, 0x4DB2, 0x5005)
    _HIGH += (0xEDB8, 0xF00F, 0xD6D6, 0xCB61, 0x9B64, 0x86D3, 0xA00A, 0xBDBD)

    def crc(data):
        """Return the CRC-32/ISO-HDLC of `data`: 4 bytes, little-endian, as in all wire formats."""
        high = low = 0xFFFF
        lows, highs = _LOW, _HIGH
        for byte in data:
            at = (low ^ byte) & 15
            low = (low >> 4 | (high & 15) << 12) ^ lows[at]
            high = high >> 4 ^ highs[at]
            at = (low ^ byte >> 4) & 15
            low = (low >> 4 | (high & 15) << 12) ^ lows[at]
            high = high >> 4 ^ highs[at]
        return struct.pack("<HH", low ^ 0xFFFF, high ^ 0xFFFF)


def token(name):
    """Return the token of a name, as `bus.wire.pattern.token` does: a number is itself, text is hashed.

    Raises ValueError if it is neither text nor a whole number from 0 to 4294967295.
    """
    if not isinstance(name, str):
        if not isinstance(name, int) or name is True or name is False or name >> 32:
            raise ValueError(name)
        return name
    high = low = code = more = 0
    for byte in bytes(name, "utf8"):  # the hash counts characters, but text on some ports is bytes
        if byte < 128:
            code = byte
        elif byte < 192:
            code = code << 6 | byte & 63
            more -= 1
        else:
            more = 1 + (byte > 223) + (byte > 239)
            code = byte & 63 >> more
        if not more:
            code += 63 * low
            high = 63 * high + low + (code >> 16) & 0xFFFF
            low = code & 0xFFFF
    return high << 16 | low ^ high


def pack(type, pattern, data=b""):
    """Return one frame. Raises ValueError above 255 names, 2048 bytes of data or type 255."""
    if isinstance(data, str):
        data = bytes(data, "utf8")
    head = pattern if isinstance(pattern, bytes) else b""
    if not head:
        for name in (pattern,) if isinstance(pattern, (str, int)) else pattern:
            head += struct.pack(">I", token(name))
    if type >> 8 or len(head) > 1020 or len(data) > 2048:
        raise ValueError("frame")
    return struct.pack(">BBH", type, len(head) // 4, len(data)) + head + data


def key(pattern):
    """Return a pattern as frames hold it, 4 bytes a token. It can replace the pattern, and saves hashing."""
    return pack(PUB, pattern)[4:]


def size(head):
    """Return the length that a frame's first four bytes announce; 0 if they cannot begin a frame."""
    data = head[2] << 8 | head[3]
    return 4 + 4 * head[1] + data if data <= 2048 else 0


def unpack(frame):
    """Return type, tuple of tokens and data of exactly one frame. Raises ValueError if it is not one."""
    if len(frame) < 4 or size(frame) != len(frame):
        raise ValueError("frame")
    end = 4 + 4 * frame[1]
    return frame[0], struct.unpack(">" + str(frame[1]) + "I", frame[4:end]), frame[end:]


def bare(message):
    """Return the frame of a message, without its envelope if it has one; None if it holds no frame."""
    length = len(message)
    if length > 12 and message[0] == 0xE1 and message[2] > 0xEF:
        length -= 12
        if message[1] > 15 or (message[2] & 15) << 8 | message[3] != length:
            return None
        message = message[12:]
    return message if length > 3 and size(message) == length else None


class Node:
    """A client of a link: it publishes frames, and calls a function for each frame that it subscribed to."""

    def __init__(self, link):
        self.link = link
        self.rejected = 0
        self.calls = []

    def publish(self, pattern, data=b"", type=PUB):
        """Send one frame. Return False if the link could not take it; the link counts it as unsent."""
        return self.link.send(pack(type, pattern, data))

    def subscribe(self, pattern, callback):
        """Call `callback(tokens, data)` for each frame whose pattern starts with `pattern`."""
        self.calls.append((key(pattern), callback))

    def poll(self):
        """Let the link work, and handle at most one frame. Return False if there was none."""
        frame = self.link.poll()
        if frame is None:
            return False
        frame = bare(frame)
        if frame is None:
            self.rejected += 1
            return True
        head = frame[4 : 4 + 4 * frame[1]]
        for prefix, callback in self.calls:
            if head.startswith(prefix):
                _, tokens, data = unpack(frame)
                callback(tokens, data)
        return True


# part: uart
def stuff(data):
    """Return `data` in COBS between two zeros. The first zero ends any noise before it."""
    out = bytearray(1)
    start, end = 0, len(data)
    while True:
        stop = data.find(b"\0", start, start + 254)
        if stop >= 0:
            after = stop + 1
        else:
            stop = after = min(start + 254, end)
        out.append(stop - start + 1)
        out.extend(data[start:stop])
        if after == stop and (after == end or stop - start < 254):
            break
        start = after
    out.append(0)
    return out


def unstuff(data):
    """Decode the COBS run `data`, a bytearray that is overwritten. Return None if it was cut or damaged.

    It works in place: each code byte becomes the zero that it stands for. Only the first code byte, and one
    after a full block, are removed.
    """
    at, code = 0, 255
    while at < len(data):
        full = code == 255
        code = data[at]
        if full:
            data = data[:at] + data[at + 1 :]
            at -= 1
        else:
            data[at] = 0
        at += code
    return data if at == len(data) else None


class Uart:
    """A serial line. `uart` has MicroPython's `read(n)` and `write(data)`, and `read` does not wait.

    It receives messages of up to `limit` bytes. Sending one needs about three times its length in memory.
    """

    polls = 0

    def __init__(self, uart, limit=256):
        self.uart = uart
        self.most = limit + 4 + (limit + 257) // 254
        self.held = bytearray()
        self.rest = b""
        self.skip = False
        self.rejected = self.oversize = self.unsent = 0

    def send(self, message):
        data = stuff(message + crc(message))
        for _ in range(2000):  # a driver with a small buffer takes a few bytes at a time
            data = data[self.uart.write(data) or 0 :]
            if not data:
                return True
        self.unsent += 1
        return False

    def poll(self):
        data = self.rest or self.uart.read(64)
        message = None
        while data and message is None:
            end = data.find(b"\0")
            self._hold(data if end < 0 else data[:end])
            data = data[end + 1 :] if end >= 0 else b""
            if end >= 0:
                message = self._ended()
        self.rest = data or b""
        return message

    def _hold(self, data):
        if self.skip:
            return
        if len(self.held) + len(data) > self.most:
            self.oversize += 1
            self.skip = True
            self.held = bytearray()
        else:
            self.held.extend(data)

    def _ended(self):
        data, self.held, self.skip = self.held, bytearray(), False
        if not data:
            return None
        data = unstuff(data)
        if data is None or len(data) < 8 or crc(data) != b"\x1c\xdf\x44\x21":
            self.rejected += 1
            return None
        return bytes(data[:-4])


# part: rs485 needs uart
if hasattr(time, "sleep_ms"):
    sleep_ms = time.sleep_ms
else:

    def sleep_ms(ms):
        time.sleep(ms / 1000)


class Rs485(Uart):
    """A shared pair of wires: the gateway polls, and node `node` (1 to 254) answers with a waiting message.

    Call `poll()` at least every 10 ms. `drive(1)` switches the driver on before sending and `drive(0)` off
    after it; leave it out if the transceiver does that itself. Set `echo` if the receiver hears its own node.
    At most `queue` messages wait.
    """

    def __init__(self, uart, node, drive=None, limit=256, queue=4, echo=False):
        Uart.__init__(self, uart, limit)
        self.node, self.drive, self.queue_max, self.echo = node, drive, queue, echo
        self.queue = []
        self.said = None

    def send(self, message):
        if len(self.queue) >= self.queue_max:
            self.unsent += 1
            return False
        self.queue.append(message)
        return True

    def poll(self):
        message = Uart.poll(self)
        if message is None:
            return None
        said, self.said = self.said, None
        if message == said:
            return None
        if len(message) != 4 or message[0] != 0xE2 or message[2] != 0xFF:
            return message
        if message[1] == self.node and message[3] == 0:
            self._answer()
        return None

    def _answer(self):
        self.polls += 1
        self.rest = self.rest or self.uart.read(64) or b""
        if len(self.rest.strip(b"\0")) < 3:  # else `poll` came late, and others have the turn
            self._say(self.queue.pop(0) if self.queue else bytes((0xE2, self.node, 0xFF, 1)))

    def _say(self, message):
        sleep_ms(1)
        if self.drive:
            self.drive(1)
        Uart.send(self, message)
        if hasattr(self.uart, "flush"):
            self.uart.flush()
        if self.drive:
            self.drive(0)
        if self.echo:
            self.said = message


# part: clock
if hasattr(time, "ticks_ms"):
    ticks_ms, ticks_diff = time.ticks_ms, time.ticks_diff
else:

    def ticks_ms():
        return int(time.monotonic() * 1000)

    def ticks_diff(end, start):
        return end - start


# part: tcp needs clock
class Tcp:
    """A plain TCP stream of frames: it dials `host` and `port`, and reconnects with growing pauses.

    At most `queue` bytes wait to be sent. Only dialling blocks, for at most `timeout_s`.
    """

    polls = 0

    def __init__(self, host, port, limit=1024, queue=4096, timeout_s=2):
        self.address = (host, port)
        self.limit, self.queue_bytes, self.timeout_s = limit, queue, timeout_s
        self.sock = None
        self.fault = ""
        self.pause_ms = self.since_ms = self.dials = 0
        self.rejected = self.oversize = self.unsent = 0
        self._forget()

    def _forget(self):
        self.data = b""
        self.skip = 0
        self.gone = None  # the error of a write: what the peer sent before is still to be read
        self._unqueue()

    def _unqueue(self):
        self.queue = []
        self.queued = 0

    def send(self, message):
        if self.sock is None or self.gone or self.queued + len(message) > self.queue_bytes:
            self.unsent += 1
            return False
        self.queue.append(message)
        self.queued += len(message)
        self._flush()
        return True

    def poll(self):
        if self.sock is None and not self._dial():
            return None
        self._flush()
        message = self._message()
        if message is None and self.sock is not None:
            self._read()
            message = self._message()
        return message

    def close(self):
        """Close the connection. The next `poll()` dials again."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None
            self.unsent += len(self.queue)
            self._forget()

    def _dial(self):
        if self.pause_ms and ticks_diff(ticks_ms(), self.since_ms) < self.pause_ms:
            return False
        try:
            import usocket as socket
        except ImportError:
            import socket  # imported late: some boards do not have it
        sock = None
        try:
            found = socket.getaddrinfo(self.address[0], self.address[1], 0, socket.SOCK_STREAM)
            place = found[self.dials % len(found)]  # another address each time: not each may answer
            self.dials += 1
            sock = socket.socket(place[0], socket.SOCK_STREAM)
            sock.settimeout(self.timeout_s)
            sock.connect(place[-1])
            if hasattr(sock, "getpeername") and sock.getpeername() == sock.getsockname():
                raise OSError(111, "refused")
            sock.setblocking(False)
        except OSError as error:
            if sock:
                sock.close()
            self._later(error)
            return False
        self.sock = sock
        return True

    def _later(self, why):
        self.fault = str(why)
        self.since_ms = ticks_ms()
        self.pause_ms = min(2 * self.pause_ms or 250, 30000)

    def _lost(self, why):
        self.close()
        self._later(why)

    def _flush(self):
        while self.queue:
            try:
                count = self.sock.send(self.queue[0])
            except OSError as error:
                if error.args[0] != 11:  # EAGAIN: no room now
                    self.gone = error
                    self.unsent += len(self.queue)
                    self._unqueue()
                return None
            self.queued -= count
            if count < len(self.queue[0]):
                self.queue[0] = self.queue[0][count:]
                return None
            self.queue.pop(0)

    def _read(self):
        try:
            data = self.sock.recv(256)
        except OSError as error:
            if error.args[0] == 11 and not self.gone:  # EAGAIN: nothing to read now
                return None
            return self._lost(self.gone or error)
        if not data:
            return self._lost(self.gone or "the peer hung up")
        cut = min(self.skip, len(data))
        self.skip -= cut
        self.data += data[cut:]

    def _message(self):
        data = self.data
        if len(data) < 4:
            return None
        length = size(data)
        if data[0] == 0xE1 and data[2] > 0xEF:
            length = (data[2] & 15) << 8 | data[3]
            length = 12 + length if 4 <= length <= 3072 else 0
        if not length:
            self.rejected += 1
            return self._lost("not a frame")
        self.pause_ms = 0
        if length > self.limit:
            self.oversize += 1
            self.skip = max(0, length - len(data))
            self.data = data[length:]
            return self._message()
        if len(data) < length:
            return None
        self.data = data[length:]
        return data[:length]


# part: i2c
class Mailbox:
    """The target's side of an I2C mailbox (docs/wire/i2c.md): 64 bytes of memory that the controller reads
    and writes. With `machine.I2CTarget`: `I2CTarget(0, 0x42, mem=memory)`, `Node(Mailbox(memory))`.

    It receives messages of up to `limit` bytes; at most `queue` messages wait to be sent.
    """

    polls = 0

    def __init__(self, memory, limit=256, queue=4):
        self.memory, self.limit, self.queue_max = memory, limit, queue
        self.queue = []
        self.rejected = self.oversize = self.unsent = 0
        self.epoch = self.before = 0
        self._reset()
        for at in (0x1E, 0x1F, 0x20, 0x21):
            memory[at] = 0

    def _reset(self):
        self.out = b""
        self.placed = False
        self.flags = self.toggle = self.taken = 0
        self.held = None

    def send(self, message):
        if len(self.queue) >= self.queue_max:
            self.unsent += 1
            return False
        self.queue.append(message)
        return True

    def poll(self):
        count, control = self.memory[0x1E], self.memory[0x1F]
        message = None
        if not count and 0 < control < 16 and control != self.before:
            self._link(control)
            self.before = control
        if self.epoch and control & 15 == self.epoch:
            if (control & 16) << 1 == self.toggle:
                self._place()
            elif not self.placed:
                self._link(0)  # it acknowledged a segment that was not there: make it start a new epoch
            if self.epoch and 0 < count < 31 and control & 32 != self.taken:
                self.taken = control & 32
                message = self._take(control, self.memory[0x1E - count : 0x1E])
        self.memory[0x20] = self.flags | self.toggle | self.taken >> 1 | self.epoch
        return message

    def _link(self, epoch):
        """Start a new epoch. A message in transfer is lost: neither end knows how much of it arrived."""
        self.unsent += self.placed or bool(self.out)
        self.rejected += self.held is not None
        self._reset()
        self.epoch = epoch
        self.memory[0x21] = 0

    def _take(self, control, data):
        if control & 128:
            self.rejected += self.held is not None
            self.held = bytearray()
        if self.held is None:
            return None
        self.held.extend(data)
        if len(self.held) > self.limit + 4:
            self.oversize += 1
            self.held = None
        elif control & 64:
            return self._ended()
        return None

    def _ended(self):
        data, self.held = self.held, None
        if len(data) < 8 or crc(data) != b"\x1c\xdf\x44\x21":
            self.rejected += 1
            return None
        return bytes(data[:-4])

    def _place(self):
        """Expose the next segment, if any: the last one is taken. `poll` writes the control byte last."""
        start = 0
        if not self.out and self.queue:
            message = self.queue.pop(0)
            self.out = message + crc(message)
            start = 128
        part, self.out = self.out[:30], self.out[30:]
        self.memory[0x21] = len(part)
        self.flags = 0
        self.placed = bool(part)
        if part:
            for at in range(len(part)):
                self.memory[0x22 + at] = part[at]
            self.flags = start if self.out else start | 64
            self.toggle ^= 32
