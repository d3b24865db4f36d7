"""Reasons why a ledger counts a message as dropped, or its input as rejected, and who intended it. Pure.

The monitor, whose events are of trouble only, and the audit judge a ledger by this one table.
"""

from typing import Final, Literal, NamedTuple

from bus.vacancy import NO_DEVICE, NO_PEER

Kind = Literal["policy", "elsewhere", "gone", "trouble"]
"""The kind of a reason.

`policy`: the topology asked for it. `elsewhere`: the message reached its place another way, so nothing is
missing. `gone`: the peer or the link was gone. `trouble`: all else, unknown reasons included.
"""


class Reason(NamedTuple):
    """One reason: `word` is what ledgers, metrics and captures contain; `meaning` is for people."""

    word: str
    kind: Kind
    meaning: str


DROPPED: Final = (
    Reason(
        "pattern",
        "policy",
        "a filter of the side does not let the frame out; or it is an event that no list of the side names",
    ),
    Reason("peers", "policy", "`peers` of the address do not let this peer hear the message"),
    Reason("no frame", "policy", "a field medium, or a side with a pattern, takes TMQ frames only"),
    Reason(
        "no name", "policy", "`prefix`, `strip` and `rename` of the side have no name for the frame there"
    ),
    Reason("limit", "policy", "`limits`: more frames of the pattern than may pass in a second"),
    Reason("conflated", "policy", "`policy: conflate`: a later frame of the pattern took its place"),
    Reason("shed", "policy", "`shed`: more than its `queue_bytes` would wait"),
    Reason("aged out", "policy", "`shed`: the message waited longer than its `age_ms`"),
    Reason("type", "policy", "TMQ: the frame is no message (type 01), and other types command brokers"),
    Reason("not sent here", "policy", "a protocol: what the frame means is not in `send`"),
    Reason("in doubt", "policy", "`on_doubt: stop`: no broker tells which gateway may send"),
    Reason("listen only", "policy", "CAN: the link only listens"),
    Reason("incomplete", "policy", "dbc: the value is kept; other signals of its message are not known yet"),
    Reason("emptied", "policy", "durable: `journal empty` dropped it"),
    Reason("not relayed", "policy", "an announcement: the broker is older, and relays none"),
    Reason("no subscriber", "policy", "TMQ: no client has subscribed to the pattern"),
    Reason("heard", "elsewhere", "another appliance sent the frame first"),
    Reason("late", "elsewhere", "it waited in a journal, and a side without `late` sends nothing so old"),
    Reason("plain peer", "elsewhere", "durable: the end acknowledges nothing, and gets the message live"),
    Reason("for others", "elsewhere", "durable: it was found in the journal, and is not for this end"),
    Reason("kept", "elsewhere", "durable: it is in the journal when its link closes, and comes later"),
    Reason("journal full", "trouble", "durable: no room in the journal: its oldest messages, or low classes"),
    Reason("expired", "trouble", "durable: it was in the journal for longer than `age_h`, or its `age_ms`"),
    Reason("damaged", "trouble", "durable: the journal could not be read there"),
    Reason("fenced", "elsewhere", "this gateway may no longer forward: another one does"),
    Reason(NO_PEER, "gone", "nobody has dialled the address, or whom it dials is not there; counts once"),
    Reason("peer gone", "gone", "the peer was gone when the message was offered"),
    Reason("closed", "gone", "the message waited, or was offered, when the pipe was closed"),
    Reason(NO_DEVICE, "trouble", "the device is not there, or the link could not be opened; counts once"),
    Reason("queue full", "trouble", "more would wait than the queue holds, and no `shed` says what to do"),
    Reason("memory", "trouble", "the process held more than its `memory_bytes`, and most of it waited here"),
    Reason(
        "stale",
        "trouble",
        "it waited too long for the medium, or longer than `age_ms` on a trunk or at a takeover; no `shed` "
        "asked for that",
    ),
    Reason("unheard", "gone", "at a takeover: another may have sent it, where nobody hears that"),
    Reason("hops", "trouble", "no hops are left for a trunk"),
    Reason("loop", "trouble", "the pipe is cut because it carries a loop"),
    Reason("tokens", "trouble", "with `prefix` or `strip` the frame would have more than 255 tokens"),
    Reason("frame inside", "trouble", "`opaque`: the data look like a frame, and would be taken for one"),
    Reason("empty", "trouble", "the medium cannot carry an empty message"),
    Reason("short", "trouble", "the medium cannot carry so short a message"),
    Reason("oversize", "trouble", "the medium cannot carry so long a message"),
    Reason("malformed", "trouble", "the message is not what the medium carries"),
    Reason("control", "trouble", "RS-485: an application's message that looks like a poll"),
    Reason("absent", "trouble", "I2C: the target does not answer"),
    Reason("stuck", "trouble", "I2C: a line is held low"),
    Reason("reset", "trouble", "I2C: the target booted in the middle of the transfer"),
    Reason("stalled", "trouble", "I2C: the target takes nothing; CAN: the driver took too long"),
    Reason("bus off", "trouble", "CAN: the driver had the message when the controller went bus-off"),
    Reason("unconfirmed", "trouble", "CAN: the kernel never confirmed the message"),
    Reason("no pattern", "trouble", "TMQ: a frame without tokens cannot be published"),
    Reason("patterns full", "trouble", "TMQ: too many patterns are declared, and all of them are in use"),
    Reason("undeclared", "trouble", "TMQ: no broker took the new pattern in time"),
    Reason(
        "line end inside", "trouble", "lines, NMEA: the data, or a name in a template, would end the line"
    ),
    Reason(
        "no text", "trouble", "lines: data that are not of the `encoding`; JSON lines: data that are no JSON"
    ),
    Reason("undelivered", "trouble", "xbee: the module could not deliver the packet, or did not say so"),
    Reason("no token", "trouble", "lines: the template has a place for a token that the frame does not have"),
    Reason("checksum", "trouble", "NMEA: the data have a checksum, and it is wrong"),
    Reason("late chunk", "trouble", "bytes: a later chunk of the stream was written before"),
    Reason("after a gap", "trouble", "bytes with `on_gap: end`: a chunk before it is missing"),
    Reason(
        "no command", "trouble", "a protocol: the device may not be given this value; PATTERN/result says why"
    ),
    Reason("out of range", "trouble", "dbc: the value is outside of the range of the signal, or of its bits"),
    Reason("no value", "trouble", "dbc: the data are nothing that the signal can have"),
    Reason("no signal", "trouble", "dbc: the message has no signal of that name"),
    Reason("filled", "trouble", "dbc: `fill` gives the value of the signal"),
    Reason("multiplexer", "trouble", "dbc: a signal on several pages, none of which is chosen"),
    Reason("fill failed", "trouble", "dbc: the function that fills a signal failed; the link says how"),
    Reason("address lost", "trouble", "dbc: another node of J1939 has taken the address"),
    Reason(
        "failed", "trouble", "a service on the bus, or a protocol, has a defect: the log or the link says it"
    ),
    Reason("refused", "trouble", "NNG, the kernel, a collector or an outlet did not accept the message"),
)
"""The reasons of dropped messages. The kernel may add its own words."""

REJECTED: Final = (
    Reason("pattern", "policy", "a filter does not let the frame in"),
    Reason("peers", "policy", "`peers` of the address do not let this peer send the message"),
    Reason("no frame", "policy", "a pattern takes TMQ frames only"),
    Reason("no name", "policy", "`prefix`, `strip` and `rename` have no name for the frame in the bridge"),
    Reason("unchanged", "policy", "`unchanged: drop`: the data are those of the last frame of the pattern"),
    Reason("limit", "policy", "`limits`: more frames of the pattern than may pass in a second"),
    Reason("type", "policy", "a rule of a syndication broker: the frame is no data (type 01)"),
    Reason("canary", "policy", "a rule of a syndication broker: the frame searches for a loop"),
    Reason("echo", "elsewhere", "our own message came back"),
    Reason("duplicate", "elsewhere", "the frame came before, another way"),
    Reason("standby", "elsewhere", "this gateway does not forward now: another one does"),
    Reason("heard", "elsewhere", "a standby saw the frame on both sides"),
    Reason(
        "late", "elsewhere", "after a takeover: the other gateway still sent it; or it waited in a journal"
    ),
    Reason("repeat", "elsewhere", "CAN: a controller sent a frame again that was received before"),
    Reason("fragment repeated", "elsewhere", "multicast: the fragment came before"),
    Reason("foreign", "elsewhere", "CAN: the frame is not ours"),
    Reason("hex frame", "elsewhere", "VE.Direct: the frame is not part of a block"),
    Reason("not available", "elsewhere", "a protocol: the device says that it has no value"),
    Reason("peer gone", "gone", "a broker: the candidate was gone when its claim was looked at"),
    Reason("failed", "trouble", "a protocol has a defect: the link says which"),
    Reason("untold", "trouble", "a protocol: the item became no frame, and the protocol told no reason"),
    Reason(
        "results full", "trouble", "a protocol: too many commands ended at once: PATTERN/result lacks some"
    ),
    Reason("another sender", "trouble", "raw, dbc: an identifier of `send` that somebody else sends"),
    Reason("unsigned", "trouble", "a trunk or broker with keys: the peer does not sign what it sends"),
    Reason(
        "forged",
        "trouble",
        "a trunk or broker with keys: the other end has another key, or did not sign this",
    ),
    Reason("replayed", "trouble", "a trunk with keys on a shared wire: the message was said before"),
    Reason("clock", "trouble", "a trunk with keys on a shared wire: the sender's clock is far from ours"),
    Reason("signed", "trouble", "a trunk or broker without keys: the peer signs what it sends"),
    Reason("error frame", "trouble", "CAN, where the adapter's error frames say no more: a frame failed"),
    Reason("tokens", "trouble", "with `prefix` the frame would have more than 255 tokens"),
)
"""The reasons of rejected input; of trouble, only that of keys. Formats have more (docs/wire)."""

AMISS: Final = frozenset({"unsigned", "forged", "replayed", "clock", "signed", "error frame", "overrun"})
"""Reasons of rejected input by which somebody should look: a setting or a wire is wrong, not a message."""

_KINDS: Final[dict[str, Kind]] = {reason.word: reason.kind for reason in (*REJECTED, *DROPPED)}


def is_intended(word: str) -> bool:
    """Tell whether a reason is normal filtering: by a policy, or as the message is there another way."""
    return kind_of(word) in ("policy", "elsewhere")


def kind_of(word: str) -> Kind:
    """Return the kind of a reason: `trouble` for words that are not in the tables."""
    return _KINDS.get(word, "trouble")


def troubles(counts: dict[str, int]) -> dict[str, int]:
    """Return the counts that nobody intended and that no leaving peer explains."""
    return {word: count for word, count in counts.items() if kind_of(word) == "trouble"}
