"""A client of TMQ brokers for microcontrollers: beside `buscoupler_node`, for boards with a network.

    from buscoupler_tmq import Tmq, TmqNode

    node = TmqNode(Tmq(["10.0.0.11:9942", "10.0.0.12:9942"], "10.0.0.50"))
    node.subscribe(("fridge", "set"), lambda tokens, data: ...)
    node.declare(("fridge", "temp"))
    while True:
        node.poll()                           # as often as possible
        node.publish(("fridge", "temp"), b"4.5")

Each packet has a connection of its own, as in the 2015 reference. So it works with every broker and client,
and holds a socket only while a packet passes. See docs/microcontroller.md and docs/tmq.md.
"""

try:
    from buscoupler_node import PUB, Node, key, size, ticks_diff, ticks_ms
except ImportError:  # in a checkout
    from bus.embedded.buscoupler_node import PUB, Node, key, size, ticks_diff, ticks_ms

# part: tmq needs clock
try:
    import usocket as socket
except ImportError:
    import socket

MESSAGE, ADD, FORGET, SUBSCRIBE, PUBLISH, DEAD = 0x02, 0x05, 0x0D, 0x46, 0x45, 0x4F
# EAGAIN, EINPROGRESS, EALREADY, ENOTCONN and ETIMEDOUT mean "not yet". ESP32 has other numbers than Linux.
NOT_YET = (11, 115, 119, 114, 120, 107, 128, 110, 116)
ROOM_MS = 250
IDLE_MS = 5000
PAUSE_S = 32


def packed(host, port):
    """Return an address as TMQ packets hold it. Raises ValueError if it is not IPv4 and a port."""
    address = bytes((0, 2, port >> 8, port & 255)) + bytes([int(part) for part in host.split(".")])
    if len(address) != 8 or not port:
        raise ValueError(host)
    return address


def resolved(host, port, turn):
    """Return an IPv4 address of a host and a port, another one each `turn`. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)
    return found[turn % len(found)][-1]


class Caller:
    """A connection, and the data that has come (or that is still to be sent)."""

    def __init__(self, sock, data=b""):
        self.sock, self.data = sock, data
        self.since_ms = ticks_ms()
        sock.setblocking(False)

    def age_ms(self):
        """Return how old it is: very old if the clock wrapped meanwhile."""
        passed_ms = ticks_diff(ticks_ms(), self.since_ms)
        return passed_ms if passed_ms >= 0 else IDLE_MS


class Call(Caller):
    """A packet on its way. `to` is a subscriber's address or a broker's index. Raises OSError."""

    def __init__(self, sock, to, place, packet):
        Caller.__init__(self, sock, packet)
        self.to = to
        self.fault = ""
        try:
            sock.connect(place)
        except OSError as error:
            if error.args[0] not in NOT_YET:
                raise

    def step(self, timeout_ms):
        """Return whether the other side took the packet: it then answers or closes. None if it still may."""
        try:
            while self.data:
                self.data = self.data[self.sock.send(self.data) :]
            if hasattr(self.sock, "getpeername") and self.sock.getpeername() == self.sock.getsockname():
                raise OSError(111, "refused")
            self.sock.recv(64)
        except OSError as error:
            if error.args[0] in NOT_YET and self.age_ms() < timeout_ms:
                return None
            self.fault = str(error)
        self.sock.close()
        return not self.fault


class Tmq:
    """A TMQ client on `port`, registered with the first of `brokers` ("10.0.0.11:9942") that answers.

    `host` is its IPv4 address, as publishers reach it; a broker of ours finds it out if it is "0.0.0.0".
    Messages have up to `limit` bytes; a broker's list may be longer. At most `queue` copies wait to be sent,
    and `queue` messages for `poll`.
    There are at most `patterns`, `subscribers`, and connections in each direction (`sockets`). A peer that
    has not taken a packet after `timeout_s` is gone. Registrations are repeated every `refresh_s`, and begin
    at the best broker. `queue` is also the backlog of the port.

    `broker` took the last registration (None: none answers); `fault` is the last error. Beside the counts of
    all links: `sent`, `unheard` (no subscriber), `dropped` (received, not polled in time, oldest first),
    `full` (subscribers beyond the bound), `refused` (connections closed without a whole packet).
    """

    polls = 0

    def __init__(
        self,
        brokers,
        host="0.0.0.0",
        port=9943,
        limit=512,
        queue=8,
        patterns=16,
        subscribers=16,
        sockets=3,
        timeout_s=2,
        refresh_s=10,
    ):
        self.brokers = [(name, int(number)) for name, number in (text.rsplit(":", 1) for text in brokers)]
        self.host, self.port, self.own = host, port, packed(host, port)
        self.limit, self.queue_max, self.sockets = limit, queue, sockets
        self.patterns_max, self.subscribers_max = patterns, subscribers
        self.timeout_ms, self.refresh_s = int(1000 * timeout_s), refresh_s
        self.patterns = {}  # by type and head: whether the broker must be told
        self.subscribers = []  # each (head, address)
        self.down = {}  # by address: [pause in s, seconds left of it, whether a broker has named it since]
        self.gone = b""  # addresses to report to the broker
        self.at = 0  # the broker to tell; beyond the last one during the pause after all have failed
        self.left_s, self.pause_s = refresh_s, 1
        self.turns = [0] * len(self.brokers)  # the address of each to dial, another one after a failure
        self.broker = None
        self.fault = ""
        self.rejected = self.oversize = self.unsent = 0
        self.sent = self.unheard = self.dropped = self.full = self.refused = 0
        self.listener = None
        self.queue, self.calls, self.callers, self.inbox = [], [], [], []
        self.second_ms = ticks_ms()
        self._listen()

    def register(self, type, head):
        """Tell the broker of a pattern.

        Raises ValueError for too many, for one longer than `limit` - 12, and for publishing the empty one.
        """
        pattern = bytes((type,)) + head
        if pattern not in self.patterns:
            long = len(head) + 12 > self.limit
            if long or len(self.patterns) >= self.patterns_max or pattern == bytes((PUBLISH,)):
                raise ValueError("pattern")
            self.patterns[pattern] = True

    def send(self, message):
        """Queue a copy of a frame of type PUB for each subscriber. Return False if one or all cannot have it.

        The first frame of a pattern that was not declared finds no subscriber.
        """
        if message[0] != PUB or len(message) > self.limit:
            self.unsent += 1
            return False
        head = message[4 : 4 + 4 * message[1]]
        self.register(PUBLISH, head)
        found = [address for known, address in self.subscribers if known == head]
        self.unheard += not found
        packet = bytearray(message)  # one copy of it on the heap, for all subscribers
        packet[0] = MESSAGE
        taken = 0
        for address in found:
            taken += self._queue(address, packet)
        self._start()
        return 0 < taken == len(found)

    def _queue(self, address, packet):
        down = self.down.get(address)
        if (down and down[1] > 0) or len(self.queue) >= self.queue_max:
            self.unsent += 1
            return 0
        self.queue.append((address, packet))
        return 1

    def poll(self):
        if not self.inbox:
            self.step()
        return self.inbox.pop(0) if self.inbox else None

    def step(self):
        """Move all packets on, without waiting. `poll` calls this when it has no message."""
        if not 0 <= ticks_diff(ticks_ms(), self.second_ms) < 1000:
            self.second_ms = ticks_ms()
            self._tick()
        for call in self.calls[:]:
            self._advance(call)
        self._start()
        self._accept()
        for caller in self.callers[:]:
            try:
                ended = self._read(caller)
            except MemoryError:
                self.oversize += 1
                ended = True
            if ended:
                caller.sock.close()
                self.callers.remove(caller)

    def close(self):
        """Close all sockets. They are opened again within a second, if `poll` or `step` is called."""
        self.unsent += len(self.queue) + sum(not isinstance(call.to, int) for call in self.calls)
        for each in self.calls + self.callers:
            each.sock.close()
        self.queue, self.calls, self.callers = [], [], []
        if self.listener:
            self.listener.close()
            self.listener = None
        self.at, self.left_s = len(self.brokers), 0
        self.broker = None

    def _tick(self):
        """Once a second: end pauses, and begin a round of registrations at the best broker."""
        if self.listener is None:
            self._listen()
        for down in self.down.values():
            down[1] -= 1
        self.left_s -= 1
        busy = self.at < len(self.brokers) and any(self.patterns.values())
        if self.left_s <= 0 and not busy:
            self.left_s = self.refresh_s
            self.at = 0
            self._all_due()

    def _all_due(self):
        for pattern in self.patterns:
            self.patterns[pattern] = True

    def _start(self):
        """Begin calls while there is room: at most one to a broker, and one to each subscriber."""
        if self.at < len(self.brokers) and not any(isinstance(call.to, int) for call in self.calls):
            self._tell()
        at = 0
        while at < len(self.queue):
            address, packet = self.queue[at]
            if any(call.to == address for call in self.calls):
                at += 1
                continue
            sock = self._socket()
            if sock is None:
                return
            self.queue.pop(at)
            host = ".".join([str(byte) for byte in address[4:]])
            self._call(sock, address, host, address[2] << 8 | address[3], 0, packet)

    def _tell(self):
        """Tell the broker one thing that it must know: a pattern, or who is gone."""
        due = [pattern for pattern in self.patterns if self.patterns[pattern]]
        sock = self._socket() if due or self.gone else None
        if sock is None:
            return
        if due:
            pattern = due[0]
            packet = bytes((pattern[0], len(pattern) // 4, 0, 8)) + pattern[1:] + self.own
            self.patterns[pattern] = False
        else:
            packet = bytes((DEAD, 0, 0, len(self.gone))) + self.gone
            self.gone = b""
        host, port = self.brokers[self.at]
        self._call(sock, self.at, host, port, self.turns[self.at], packet)

    def _socket(self):
        """Return a new socket, or None if there is none at the moment."""
        try:
            return socket.socket() if len(self.calls) < self.sockets else None
        except OSError as error:
            self.fault = str(error)

    def _call(self, sock, to, host, port, turn, packet):
        try:
            call = Call(sock, to, resolved(host, port, turn), packet)
        except OSError as error:
            sock.close()
            return self._ended(to, False, str(error))
        self.calls.append(call)
        self._advance(call)  # at once if it can be: a peer of the reference waits for the packet

    def _advance(self, call):
        taken = call.step(self.timeout_ms)
        if taken is not None:
            self.calls.remove(call)
            self._ended(call.to, taken, call.fault)

    def _ended(self, to, taken, fault):
        self.fault = fault or self.fault
        if isinstance(to, int):
            if not taken:
                return self._move(to)
            self.broker = self.brokers[to]
            self.pause_s = 1
        elif taken:
            self.sent += 1
            self.down.pop(to, None)
        else:
            rest = [job for job in self.queue if job[0] != to]
            self.unsent += 1 + len(self.queue) - len(rest)
            self.queue = rest
            self._lost(to)

    def _move(self, at):
        """Tell the next broker everything, since this one failed. Pause after the last one."""
        self.turns[at] += 1
        if self.broker == self.brokers[at]:
            self.broker = None
        self._all_due()
        if at == self.at:
            self.at += 1
        if self.at == len(self.brokers):
            self.left_s = self.pause_s
            self.pause_s = min(2 * self.pause_s, self.refresh_s)

    def _lost(self, address):
        """Report a subscriber that took no packet, and pause. Forget it if no broker names it for long."""
        if not self._known(address):
            return
        if len(self.gone) < 64:
            self.gone += address
        last_s, _, named = self.down.get(address) or (0, 0, True)
        if last_s < PAUSE_S or named:
            pause_s = min(2 * last_s or 1, PAUSE_S)
            self.down[address] = [pause_s, pause_s, False]
        else:
            self._remove([pair for pair in self.subscribers if pair[1] == address])

    def _known(self, address):
        return any(known == address for _, known in self.subscribers)

    def _remove(self, pairs):
        self.subscribers = [pair for pair in self.subscribers if pair not in pairs]
        for _, address in pairs:
            if not self._known(address):
                self.down.pop(address, None)

    def _listen(self):
        sock = None
        try:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(resolved(self.host, self.port, 0))
            sock.listen(self.queue_max)
            sock.setblocking(False)
            self.listener = sock
        except OSError as error:
            self.fault = str(error)
            if sock:
                sock.close()

    def _accept(self):
        """Accept while there is room. A connection that is older and has no packet yet makes room."""
        while self.listener and (len(self.callers) < self.sockets or self.callers[0].age_ms() > ROOM_MS):
            try:
                self.callers.append(Caller(self.listener.accept()[0]))
            except OSError as error:
                if error.args[0] not in NOT_YET:
                    self.fault = str(error)
                    self.listener.close()
                    self.listener = None
                return
            if len(self.callers) > self.sockets:
                self.callers.pop(0).sock.close()
                self.refused += 1

    def _read(self, caller):
        """Read what came on a connection. Return whether that was the end of it."""
        try:
            data = caller.sock.recv(256)
            caller.data += data
        except OSError as error:
            waits = error.args[0] in NOT_YET and caller.age_ms() < IDLE_MS
            self.refused += not waits
            return not waits
        if self._is_long(caller.data) and not self._shorten(caller):
            data = b""
        length = size(caller.data) if len(caller.data) > 3 else 4
        if not data or not length:
            self.rejected += 1
        elif self._is_long(caller.data):
            return False
        elif length > self.limit:
            self.oversize += 1
        elif len(caller.data) < length:
            return False
        else:
            self._take(caller.data if len(caller.data) == length else caller.data[:length])
        return True

    def _is_long(self, data):
        """Return whether a broker's list begins that is longer than `limit`: it is taken in pieces."""
        return len(data) > 3 and data[0] in (ADD, FORGET) and 12 + 4 * data[1] <= self.limit < size(data)

    def _shorten(self, caller):
        """Take what has come of a long list, and leave the rest. Return False if it makes no sense."""
        data = caller.data
        end, length = 4 + 4 * data[1], size(data)
        if len(data) < end:
            return True
        after = end + (min(len(data), length) - end) // 8 * 8
        left = length - after
        if left % 8 or not self._named(data[0], data[4:end], data[end:after]):
            return False
        caller.data = data[:2] + bytes((left >> 8, left & 255)) + data[4:end] + data[after:]
        return True

    def _take(self, frame):
        type, end = frame[0], 4 + 4 * frame[1]
        head = frame[4:end]
        if type == MESSAGE and any(e[0] == SUBSCRIBE and head.startswith(e[1:]) for e in self.patterns):
            if len(self.inbox) >= self.queue_max:
                self.inbox.pop(0)
                self.dropped += 1
            self.inbox.append(frame)
        elif type not in (ADD, FORGET) or not self._named(type, head, frame[end:]):
            self.rejected += 1

    def _named(self, type, head, data):
        """Take a broker's list of subscribers to add or remove, up to the first address that makes no sense.

        Return False if there is one.
        """
        if len(data) % 8 or bytes((PUBLISH,)) + head not in self.patterns:
            return False
        for at in range(0, len(data), 8):
            address = data[at : at + 8]
            if address[:2] != b"\0\2" or address[2:4] == b"\0\0":
                return False
            if type == FORGET:
                self._remove([(head, address)])
            else:
                self._add((head, address))
        return True

    def _add(self, pair):
        down = self.down.get(pair[1])
        if down:
            self.down[pair[1]] = [down[0], 0, True]
        if pair not in self.subscribers:
            if len(self.subscribers) < self.subscribers_max:
                self.subscribers.append(pair)
            else:
                self.full += 1


class TmqNode(Node):
    """A node whose `link` is a `Tmq`: what it subscribes to and publishes is registered with a broker."""

    def subscribe(self, pattern, callback):
        """Call `callback(tokens, data)` for each message whose pattern starts with `pattern`.

        Raises ValueError if there are too many patterns.
        """
        self.link.register(SUBSCRIBE, key(pattern))
        Node.subscribe(self, pattern, callback)

    def publish(self, pattern, data=b"", type=PUB):
        """Send one frame. Return False if the link had no room for it, or the heap."""
        try:
            return Node.publish(self, pattern, data, type)
        except MemoryError:
            self.link.unsent += 1
            return False

    def declare(self, pattern):
        """Ask the broker for the subscribers of a pattern before it is published. Raises ValueError too."""
        self.link.register(PUBLISH, key(pattern))
