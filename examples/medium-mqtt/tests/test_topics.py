"""Topics and patterns, and the settings of a side."""

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from buscoupler_mqtt.medium import Mqtt, address_of
from buscoupler_mqtt.topics import Topics, check_filter, check_topic, covers, meet, start_of, widest
from hypothesis import example, given
from hypothesis import strategies as st

from bus.wire.frame import PUB, SUB, pack, unpack
from bus.wire.pattern import Pattern, token
from topologies.checks.checker import check
from topologies.loading.loader import load

TOKENS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20)


def named(*names: int | str, data: bytes = b"") -> bytes:
    return pack(PUB, Pattern(*names), data)


def test_tokens_are_written_by_name_or_as_numbers() -> None:
    topics = Topics(["fridge", "temp"], prefix="site/7")
    assert topics.topic(named("fridge", "temp", 7)) == "site/7/fridge/temp/7"
    assert topics.topic(named("fridge", "door")) == f"site/7/fridge/0x{token('door'):08x}"
    assert unpack(topics.frame("site/7/fridge/temp/7", b"x")) == (PUB, Pattern("fridge", "temp", 7), b"x")


@pytest.mark.parametrize("name", ["a/b", "+", "#", "a+", "zero\0", "bell\a"])
def test_a_name_that_can_be_no_level_is_written_as_its_number(name: str) -> None:
    topics = Topics([name])
    topic = topics.topic(named(name))
    check_topic(topic)
    assert topics.frame(topic, b"") == named(name)


def test_names_with_one_token_are_written_as_its_number() -> None:
    assert token("a") == 97
    assert Topics(["a"]).topic(named("a")) == "a"
    assert token("\x02Ё") == token("\x03І") or Topics(["a", "a"]).topic(named("a")) == "a"


def test_digits_are_a_number_where_they_can_be_one() -> None:
    topics = Topics(["7"])
    assert topics.frame("dev/7", b"") == named("dev", 7)
    assert topics.frame("dev/867530900000001", b"") == named("dev", "867530900000001")
    assert topics.frame(topics.topic(named("7")), b"") == named("7")  # a name of digits stands in quotes


@given(TOKENS, st.binary(max_size=100), st.lists(st.text(max_size=8), max_size=8))
def test_what_leaves_comes_back_the_same(tokens: list[int], data: bytes, names: list[str]) -> None:
    topics = Topics(names, prefix="p")
    message = pack(PUB, [*tokens, *map(token, names)], data)
    topic = topics.topic(message)
    check_topic(topic)
    assert topics.frame(topic, data) == message


@given(st.text(), st.binary())
@example("a//b", b"")
@example("", b"")
@example("/", b"")
@example("9" * 5000, b"")
def test_any_topic_is_a_frame_or_rejected(topic: str, data: bytes) -> None:
    frame: Callable[[], bytes] = partial(Topics().frame, topic, data)
    if all(topic.split("/")):
        assert unpack(frame()).data == data
    else:
        with pytest.raises(ValueError, match="topic"):
            frame()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "malformed"),
        (pack(PUB, [1])[:-1], "malformed"),
        (pack(SUB, [1]), "type"),
        (pack(PUB, [], b"x"), "no pattern"),
        (pack(PUB, range(200)), "topic"),
    ],
)
def test_what_has_no_topic_has_a_reason(message: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        Topics(prefix="p").topic(message)


def test_longest_data() -> None:
    assert Topics().frame("a", bytes(2048))
    with pytest.raises(ValueError, match="oversize"):
        Topics().frame("a", bytes(2049))
    with pytest.raises(ValueError, match="topic"):
        Topics(prefix="p").frame("q/a", b"")


def matches(text: str, topic: str) -> bool:
    """Whether a filter matches a topic, by the words of the standard."""
    wanted, levels = text.split("/"), topic.split("/")
    if wanted[-1] == "#":
        levels, wanted = levels[: len(wanted) - 1], wanted[:-1]
    return len(wanted) == len(levels) and all(
        w in ("+", level) for w, level in zip(wanted, levels, strict=True)
    )


def test_filters_that_cover_or_meet_others() -> None:
    levels = ("a", "b")
    topics = ["/".join(some) for count in (1, 2, 3, 4) for some in product(levels, repeat=count)]
    filters = ["/".join(some) for count in (1, 2, 3) for some in product(("a", "b", "+"), repeat=count)]
    filters += ["#", *(f"{one}/#" for one in filters)]
    for one, other in product(filters, filters):
        mine, theirs = ({topic for topic in topics if matches(text, topic)} for text in (one, other))
        assert meet(one, other) == bool(mine & theirs), (one, other)
        if covers(one, other):
            assert theirs <= mine, (one, other)


def test_a_filter_is_subscribed_once() -> None:
    assert widest(["a/b", "a/#", "a/+", "c"]) == ["a/#", "c"]
    with pytest.raises(ValueError, match=r"a/\+ and \+/b overlap"):
        widest(["a/+", "+/b"])
    assert start_of("plant/7/+/set") == ("plant", 7)
    assert start_of("#") == ()


@pytest.mark.parametrize("text", ["", "a/#/b", "a+/b", "a#", "$share/g/a", "a\0", "x" * 65_536])
def test_invalid_filters(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        check_filter(text)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": "http://h"}, "write mqtt://HOST:PORT"),
        ({"url": "mqtt://me:secret@h"}, "password_file"),
        ({"url": "mqtt://*:1"}, "no host|not dialled"),
        ({"tls": {}}, "mqtts:// only"),
        ({"qos": 0, "spool": True}, "spool needs qos: 1"),
        ({"session_s": 5}, "without client_id"),
        ({"password_file": "/p"}, "without user"),
        ({"subscribe": ("a/+", "+/b")}, "overlap"),
        ({"will": "a/+"}, "wildcard"),
        ({"prefix": "#"}, "wildcard"),
    ],
)
def test_settings_that_do_not_go_together(settings: dict, words: str) -> None:
    from buscoupler_mqtt.medium import Spool

    from bus.transports.options import Tls

    made = {"tls": lambda _: Tls(), "spool": lambda _: Spool(directory="/s")}
    given = {key: made.get(key, lambda value: value)(value) for key, value in settings.items()}
    with pytest.raises(ValueError, match=words):
        Mqtt(**{"url": "mqtt://h"} | given)


def test_addresses() -> None:
    assert address_of("h:1") == ("h", 1, False)
    assert address_of("mqtts://[::1]") == ("::1", 8883, True)
    assert Mqtt(url="mqtt://[::1]").device == "[::1]:1883"


def test_the_shipped_topology_does_not_warn() -> None:
    found = check(load(Path(__file__).parents[1] / "topology.yaml"))
    assert [finding for finding in found if finding.level != "note"] == []
