"""Words that name endpoints, and wrong use of the commands that take them."""

import re
from typing import Any

import pytest

from appliance.commandline.cli import main
from appliance.probe.endpoint import parse_endpoint
from appliance.probe.media import forms, host_and_port
from bridges.media import MEDIA
from bridges.media.can.medium import Can
from bridges.media.tcp.medium import Tcp
from bridges.media.tmq.medium import Tmq
from bridges.media.uart.medium import Rs485, Uart
from bus.errors import LinkError

Out = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("/dev/ttyUSB0", "is no endpoint: write a bus .*or a medium .*uart:"),
        ("http://x", "is no endpoint"),
        ("tcp:127.0.0.1:5555", "is no endpoint: tcp of a topology is frames: here, as frames:HOST:PORT"),
        ("uart:", "what to open is missing"),
        ("uart:/dev/x?baud=fast", "baud must be a whole number, not 'fast'"),
        ("uart:/dev/x?baud=", "baud must be a whole number, not ''"),
        ("uart:/dev/x?rtscts=maybe", "rtscts must be true or false"),
        ("uart:/dev/x?boud=9600", "unknown setting boud: did you mean baud"),
        ("uart:/dev/x?frequency=1", "unknown setting frequency: use baud, "),
        ("uart:/dev/x?baud=1&baud=2", "baud is given twice"),
        ("uart:/dev/x?baud", "write KEY=VALUE"),
        (
            "can:can0",
            r"no other node of the bus has, or \?listen_only=true, nothing is sent$",
        ),
        ("can:?node=1", "what to open is missing"),
        ("can:can0?node=x", "node must be a whole number"),
        ("can:can0?node=1&bitrat=5", "did you mean bitrate"),
        ("tmq:", "what to open is missing"),
        ("tmq:gw-a", "brokers: the address has no port: write tcp://HOST:PORT"),
        ("tmq:*:9942", "brokers: this can be listened on, not dialled"),
        ("tmq:gw-a:9942?subscribe=fridge/#", "subscribe: # is no wildcard here"),
        ("tmq:gw-a:9942?subscribe=", "subscribe must be patterns with commas, not ''"),
        ("tmq:gw-a:9942?publish=alert", "unknown setting publish: use subscribe, host, port"),
    ],
)
def test_a_wrong_word_says_what_is_wrong(word: str, fault: str) -> None:
    with pytest.raises(LinkError, match=fault):
        parse_endpoint(word)


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("tcp://127.0.0.1", "write tcp://HOST:PORT"),
        ("uart:/dev/x?baud=0", "baud: 0 is out of range: 50 to"),
        ("uart:/dev/x?parity=Q", "parity: expected N or E"),
        ("can:can0?node=128", "node: 128 is out of range: 1 to 127"),
        ("can:can0?node=1&app_name=x", "socketcan takes none, and app_name would have no effect"),
    ],
)
def test_settings_that_never_work_are_wrong_use(word: str, fault: str, capsys: Out) -> None:
    for words in (["send", word, "fridge"], ["recv", word], ["traffic", word]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2
        assert re.search(fault, capsys.readouterr().err)


def test_words_become_settings() -> None:
    uart = parse_endpoint("uart:/dev/ttyUSB0?baud=9600&rtscts=yes")
    assert uart.medium == Uart(port="/dev/ttyUSB0", baud=9600, rtscts=True)
    word = "can:vcan0?interface=vector&node=0x2a&fd=true&app_name=x&port=5&loop=false&ratio=0.5"
    options: dict[str, Any] = {"app_name": "x", "port": 5, "loop": False, "ratio": 0.5}
    can = Can(channel="vcan0", interface="vector", node=42, fd=True, age_ms=10_000, options=options)
    assert parse_endpoint(word).medium == can
    pair = parse_endpoint("rs485:/dev/ttyUSB0?nodes=1,0x2&answer_ms=0.5&stopbits=1.5&parity=M")
    shared = Rs485(nodes=(1, 2), answer_ms=0.5)
    assert pair.medium == Uart(port="/dev/ttyUSB0", stopbits=1.5, parity="M", rs485=shared)
    brokers = ("tcp://gw-a:9942", "tcp://10.0.0.1:9943")
    tmq = Tmq(brokers=brokers, subscribe=(("fridge", "temp"), (7,), ()), port=9950)
    assert (
        parse_endpoint("tmq:gw-a:9942,tcp://10.0.0.1:9943?subscribe=fridge/temp,7,/&port=9950").medium == tmq
    )
    frames = parse_endpoint("frames:[::1]:9000?mode=listen&framing=cobs")
    assert frames.medium == Tcp(host="::1", port=9000, mode="listen", framing="cobs")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["send", "tcp://127.0.0.1:1"], "PATTERN is missing"),
        (["send", "tcp://127.0.0.1:1", "a", "--raw"], "leave PATTERN out"),
        (["send", "uart:/dev/x", "--raw"], "--raw is for a bus"),
        (["send", "tcp://127.0.0.1:1", "a", "--count", "0"], "at least 1"),
        (["send", "tcp://127.0.0.1:1", "a", "--file", "x", "--count", "2"], "--file has many"),
        (["send", "tcp://127.0.0.1:1", "a", "--file", "/does/not/exist"], "No such file"),
        (["send", "tcp://127.0.0.1:1", "a", "--data", "x" * 2049], "at most 2048"),
        (["send", "tcp://127.0.0.1:1", "a", "--hex", "0g"], "--hex: '0g' is not pairs of hex digits"),
        (["send", "tcp://127.0.0.1:1", "a", "--timeout", "-1"], "'-1' is not a number above 0"),
        (["recv", "tcp://127.0.0.1:1", "--timeout", "nan"], "'nan' is not a number above 0"),
        (
            ["recv", "tcp://127.0.0.1:1", "--names", "not/there"],
            "not/there: there is no such file",
        ),
        (["broker", "tcp://127.0.0.1:0", "--lease-ms", "0"], "lease_ms: 0 is out of range"),
        (["demo", "--rate", "0"], "'0' is not a number above 0"),
        (["top", "--seconds", "x"], "'x' is not a number above 0"),
        (["send", "tcp://127.0.0.1:1", "a", "--type", "pup"], "a type is pub"),
        (["send", "uart:/dev/x", "a", "--listen"], "are for a bus"),
        (["send", "tcp://127.0.0.1:1", "a", "--tls-ca", "x"], "are for wss"),
        (["recv", "tcp://127.0.0.1:1", "--count", "0"], "at least 1"),
        (["recv", "tcp://127.0.0.1:1", "--pattern", "a//b"], "a part between slashes is empty"),
        (["recv", "tcp://127.0.0.1:1", "--json", "--raw"], "not allowed with"),
    ],
)
def test_wrong_use_is_2(words: list[str], fault: str, capsys: Out) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert fault in capsys.readouterr().err


def test_what_only_listens_needs_nothing_that_a_sender_needs() -> None:
    for form in forms(MEDIA.ours()):
        if form.word.needed:
            name, _, rest = form.word.example.partition(":")
            target = f"{name}:{rest.partition('?')[0]}"
            with pytest.raises(LinkError, match="is missing"):
                parse_endpoint(target)
            if spares := form.word.spares:
                assert parse_endpoint(f"{target}?{spares}=true").link().state
                with pytest.raises(LinkError, match="is missing"):
                    parse_endpoint(f"{target}?{spares}=false")


def test_a_port_has_few_digits() -> None:
    with pytest.raises(LinkError, match="write it as HOST:PORT"):
        host_and_port(f"h:{'9' * 5000}")
