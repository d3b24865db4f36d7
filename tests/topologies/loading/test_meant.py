"""What is said of an unknown key: the key that it means here, one that is written like it, or all."""

import pytest

from topologies.loading.meant import hinted

CAN = ("bitrate", "channel", "fd", "gather_ms", "interface", "node")
UART = ("baud", "data_bits", "gather_ms", "parity", "port", "queue_bytes", "stopbits")
REGISTER = ("choices", "device", "kind", "no_value", "order", "pattern", "read", "register", "scale", "type")


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("adapter", CAN, "interface"),
        ("canid", CAN, "node"),
        ("Can-ID", CAN, "node"),
        ("device", UART, "port"),
        ("bytesize", UART, "data_bits"),
        ("baudrate", UART, "baud"),
        ("address", REGISTER, "register"),
        ("slave", REGISTER, "device"),
        ("topic", REGISTER, "pattern"),
        ("factor", REGISTER, "scale"),
        ("eol", ("age_ms", "delimiter"), "delimiter"),
        ("interfase", CAN, "interface"),
    ],
)
def test_the_key_that_it_means_or_is_written_like(word: str, known: tuple[str, ...], meant: str) -> None:
    assert hinted(word, known) == f'; did you mean "{meant}"?'


def test_a_name_that_may_stand_here_too() -> None:
    assert hinted("gw_a", CAN, ["gw-a"]) == '; did you mean "gw-a"?'


@pytest.mark.parametrize("word", ["slave", "topic"])
def test_what_means_nothing_here_is_like_nothing_else(word: str) -> None:
    assert hinted(word, ("late_ms", "choices")) == "; known here: choices, late_ms"
