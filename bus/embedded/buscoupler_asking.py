"""Questions of a node to a cache on its bus, beside `buscoupler_node`: last values, and the gateway's time.

    from buscoupler_asking import OK, Asking, Watch

    asking = Asking(node)
    asking.values("fridge", lambda tokens, data, age_ms: ...)
    asking.time()
    while True:
        watch.poll()                          # node.poll(), and whether the gateway is heard

See docs/microcontroller.md; format: docs/wire/values.md.
"""

try:
    from buscoupler_node import key, ticks_diff, ticks_ms
except ImportError:  # in a checkout
    from bus.embedded.buscoupler_node import key, ticks_diff, ticks_ms

# part: asking needs clock
import struct
import time

if hasattr(time, "ticks_us"):
    ticks_us = time.ticks_us
else:

    def ticks_us():
        return time.monotonic_ns() // 1000


OK, SILENT, VERSION = 0, -6, -7  # as in the node in C


class Asking:
    """Questions, one of each kind at a time. `nonce` is drawn at random: others on the bus ask, too.

    `complete` is None until the answer of `values` has ended, then the numbers of values that were said and
    left out. `round_us` is None until the gateway has told the time, then how long that took.
    """

    def __init__(self, node, nonce):
        self.node, self.nonce = node, nonce
        self.complete = self.round_us = None
        self.asked = self.told = None
        self.callback = None
        words = ("buscoupler", "values")
        self.start = key(words)
        self.words = {key(word): word for word in ("value", "end", "now")}
        node.subscribe(words, self._heard)

    def _ask(self, word, data):
        self.nonce = self.nonce + 1 & 0xFFFFFFFF
        self.node.publish(self.start + key((word, self.nonce)), data)
        return self.nonce

    def values(self, pattern, callback):
        """Call `callback(tokens, data, age_ms)` for the last value of each pattern that starts with this."""
        self.callback, self.complete = callback, None
        self.asked = self._ask("ask", key(pattern))

    def time(self):
        """Ask for the time. Poll often until it is told: half of a late poll is the error."""
        self.asked_us = ticks_us()
        self.told = self._ask("time", bytes(8))

    def now(self):
        """Return the gateway's time in seconds since 1970 and microseconds. Raises ValueError if unknown."""
        if self.round_us is None:
            raise ValueError("time")
        seconds, us = self.at
        us += ticks_diff(ticks_us(), self.at_us) + self.round_us // 2
        return seconds + us // 1000000, us % 1000000

    def _heard(self, tokens, data):
        if len(tokens) < 4:
            return
        word, nonce = self.words.get(struct.pack(">I", tokens[2])), tokens[3]
        if word == "value" and nonce == self.asked and len(tokens) > 4:
            self.callback(tokens[5:], data, tokens[4])
        elif len(data) == 8 and len(tokens) == 4:
            if word == "end" and nonce == self.asked:
                self.complete = struct.unpack(">II", data)
            elif word == "now" and nonce == self.told:
                self.told = None
                self.at_us = ticks_us()
                self.at = struct.unpack(">II", data)
                self.round_us = ticks_diff(self.at_us, self.asked_us)


class Watch:
    """A node that is polled, and whether its gateway is heard: at least once in `silence_ms`.

    A gateway that polls this node of a shared pair is heard by that.
    """

    def __init__(self, node, silence_ms):
        self.node, self.silence_ms = node, silence_ms
        self.state = OK
        self.since_ms = ticks_ms()
        self.polls = node.link.polls

    def poll(self):
        """Poll the node. Return OK, SILENT, or VERSION: what is heard is whole, and no frame of this wire."""
        rejected = self.node.rejected
        if self.node.poll():
            self.since_ms = ticks_ms()
            self.state = VERSION if self.node.rejected > rejected else OK
        elif self.node.link.polls != self.polls:
            self.polls = self.node.link.polls
            self.since_ms = ticks_ms()
            self.state = VERSION if self.state == VERSION else OK  # a poll has no version
        elif ticks_diff(ticks_ms(), self.since_ms) > self.silence_ms:
            self.state = SILENT
        return self.state
