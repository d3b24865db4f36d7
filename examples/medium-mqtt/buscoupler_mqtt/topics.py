"""Translates patterns of frames to topics of the broker, and back. No I/O.

Each token is one level of the topic. A token whose name is known is written as that name, any other as a
number. A level that is a number, `7` or `0x5be18fe4`, is that token; any other level is a name.
"""

from collections.abc import Iterable, Iterator
from struct import Struct

from bus.errors import TokenError
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, PUB, TOKENS_MAX, is_frame, pack
from bus.wire.notation import name_of, written
from bus.wire.pattern import hexadecimal, token

TOPIC_BYTES_MAX = 65_535
_DECIMAL_MAX = 0xFFFF  # a larger token is most likely a hash, which is shown in hex everywhere
_CACHE, _CACHED_BYTES_MAX = 4096, 256  # topics that are remembered, and the longest of them
_FORBIDDEN = frozenset("/+#\0")


def check_topic(topic: str) -> None:
    """Raise ValueError, with the reason, if nothing can be published on a topic."""
    if "+" in topic or "#" in topic:
        raise ValueError(f'"{topic[:64]}" has a wildcard: + and # are for subscribe only')
    check_filter(topic)


def check_filter(text: str) -> None:
    """Raise ValueError, with the reason, if a topic filter is not valid."""
    if not text or "\0" in text or len(text.encode("utf-8", "replace")) > TOPIC_BYTES_MAX:
        raise ValueError("a topic has 1 to 65535 bytes, and no zero byte")
    if text.startswith("$share/"):
        raise ValueError("a shared subscription would give each gateway other messages: leave $share out")
    levels = text.split("/")
    if any(len(level) > 1 and ("+" in level or "#" in level) for level in levels) or "#" in levels[:-1]:
        raise ValueError(f'"{text[:64]}": + is one whole level, and # is the whole last level')


def covers(wide: str, narrow: str) -> bool:
    """Return whether every topic that a filter matches is also matched by another, the `wide` one."""
    mine, theirs = wide.split("/"), narrow.split("/")
    for place, level in enumerate(mine):
        if level == "#":
            return True
        if place >= len(theirs) or theirs[place] == "#" or level not in ("+", theirs[place]):
            return False
    return len(mine) == len(theirs)


def meet(one: str, other: str) -> bool:
    """Return whether a topic can match both filters."""
    for mine, theirs in zip(one.split("/"), other.split("/"), strict=False):
        if "#" in (mine, theirs):
            return True
        if mine != theirs and "+" not in (mine, theirs):
            return False
    longer = max(one.split("/"), other.split("/"), key=len)
    shorter = min(len(one.split("/")), len(other.split("/")))
    return len(longer) == shorter or longer[shorter:] == ["#"]


def widest(filters: Iterable[str]) -> list[str]:
    """Return the filters without those that another one covers.

    Raises ValueError for two that meet otherwise: a broker may send a message once for each.
    """
    found = list[str]()
    for text in dict.fromkeys(filters):
        if not any(covers(other, text) for other in found):
            found = [other for other in found if not covers(text, other)] + [text]
    for place, text in enumerate(found):
        for other in found[place + 1 :]:
            if meet(text, other):
                raise ValueError(f"{text} and {other} overlap: a message could come twice")
    return found


def start_of(text: str) -> tuple[int | str, ...]:
    """Return the pattern with which all topics of a filter start."""
    levels = text.split("/")
    end = next((place for place, level in enumerate(levels) if level in ("+", "#")), len(levels))
    return tuple(map(meaning, levels[:end]))


def meaning(level: str) -> int | str:
    """Return the name or token in a level of a topic."""
    try:
        return name_of(level)
    except TokenError:  # digits above u32, such as the number of a device
        return level


class Topics:
    """The topics of a side. `names` are known names of tokens; `prefix` stands before each topic.

    A topic has at most `levels` levels, the prefix included.
    """

    def __init__(self, names: Iterable[int | str] = (), prefix: str = "", levels: int = 200) -> None:
        self._prefix = f"{prefix}/" if prefix else ""
        self._levels = levels
        self._by_token: dict[int, str] = {}
        self._known: dict[bytes, str] = {}
        for name in dict.fromkeys(names):
            if isinstance(name, str):
                self._learn(name)

    def _learn(self, name: str) -> None:
        """Remember a name, unless it cannot be a level, or has the token of another name."""
        number = token(name)
        usable = number not in self._by_token and not _FORBIDDEN & set(name)
        self._by_token[number] = written(name) if usable else _number(number)

    def level(self, number: int) -> str:
        """Return a token as a level of a topic."""
        return self._by_token.get(number) or _number(number)

    def topic(self, message: bytes) -> str:
        """Return the topic of a frame. Raises ValueError, with the reason of the ledger, if it has none."""
        if not is_frame(message):
            raise ValueError("malformed")
        if message[0] != PUB:
            raise ValueError("type")
        tokens = message[FRAME_BYTES_MIN : FRAME_BYTES_MIN + 4 * message[1]]
        if not tokens:
            raise ValueError("no pattern")
        found = self._known.get(tokens)
        return self._make(tokens) if found is None else found

    def _make(self, tokens: bytes) -> str:
        numbers = Struct(f">{len(tokens) // 4}I").unpack(tokens)
        made = self._prefix + "/".join(map(self.level, numbers))
        if made.count("/") >= self._levels or len(made.encode()) > TOPIC_BYTES_MAX:
            raise ValueError("topic")
        if len(self._known) >= _CACHE:
            self._known.clear()
        if len(made) <= _CACHED_BYTES_MAX:
            self._known[tokens] = made
        return made

    def frame(self, topic: str, data: bytes) -> bytes:
        """Return the frame of a message. Raises ValueError with the reason of the ledger if it fits none."""
        levels = topic.removeprefix(self._prefix).split("/")
        if not topic.startswith(self._prefix) or not all(levels) or len(levels) > TOKENS_MAX:
            raise ValueError("topic")
        if len(data) > DATA_BYTES_MAX:
            raise ValueError("oversize")
        return pack(PUB, [token(meaning(level)) for level in levels], data)

    def below(self, text: str) -> str:
        """Return a topic or a filter with the prefix."""
        return self._prefix + text

    def filters_of(self, patterns: Iterable[tuple[int | str, ...]]) -> Iterator[str]:
        """Yield filters for all topics that start with one of the patterns."""
        for pattern in patterns:
            yield self._prefix + "/".join([*(self.level(token(name)) for name in pattern), "#"])


def data_of(message: bytes) -> bytes:
    """Return the data of a frame."""
    return message[FRAME_BYTES_MIN + 4 * message[1] :]


def _number(number: int) -> str:
    return str(number) if number <= _DECIMAL_MAX else hexadecimal(number)
