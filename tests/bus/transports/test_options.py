"""Limits of addresses: their defaults, and settings that could have no effect are refused."""

from collections.abc import Callable

import pytest

from bus.schema import Owned
from bus.transports.options import (
    MESSAGE_BYTES,
    QUEUE_BYTES,
    RETRY_MAX_S,
    StreamOptions,
    Tls,
    check_age,
    check_fit,
    check_keys,
    check_last_values,
    check_limits,
    check_origins,
    check_tls,
    check_tls_of_all,
)

TCP, SECURE, WEB, INPROC, IPC = "tcp://h:5", "tls+tcp://h:5", "ws://h:5", "inproc://a", "ipc://a"
CERT = Tls(cert_file="c")
NEEDS = "listening with TLS needs tls: {cert_file: ...}"


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (lambda: check_tls(TCP, None, True), ""),
        (lambda: check_tls(TCP, Tls(), False), "tls is for tls+tcp:// and wss:// only"),
        (lambda: check_tls(SECURE, None, False), ""),
        (lambda: check_tls(SECURE, None, True), NEEDS),
        (lambda: check_tls(SECURE, Tls(), True), NEEDS),
        (lambda: check_tls(SECURE, CERT, True), ""),
        (lambda: check_tls(SECURE, CERT, False), ""),
        (lambda: check_tls(SECURE, Tls(cert_file="c", key_file="k"), False), ""),
        (lambda: check_tls(SECURE, Tls(key_file="k"), False), "key_file has no effect without cert_file"),
        (lambda: check_tls_of_all(SECURE, None, True), NEEDS),
        (lambda: check_tls_of_all(SECURE, Owned(Tls()), True), NEEDS),
        (lambda: check_tls_of_all(SECURE, Owned(own={"a": CERT}), True), ""),
        (
            lambda: check_tls_of_all(TCP, Owned(own={"a": CERT}), True),
            "tls is for tls+tcp:// and wss:// only",
        ),
        (lambda: check_keys(TCP, True, ("k",)), ""),
        (lambda: check_keys(TCP, False, None), ""),
        (lambda: check_keys(INPROC, True, None), ""),
        (lambda: check_keys(INPROC, True, ()), ""),
        (
            lambda: check_keys(TCP, False, ()),
            "keys have no effect here: only a trunk is signed, so write trunk: true beside them",
        ),
        (
            lambda: check_keys(INPROC, True, ("k",)),
            "keys have no effect here: inproc:// never leaves its process",
        ),
        (lambda: check_age(TCP, True, 5), ""),
        (lambda: check_age(TCP, False, None), ""),
        (lambda: check_age(INPROC, True, None), ""),
        (
            lambda: check_age(TCP, False, 5),
            "age_ms has no effect here: it is for trunks, so write trunk: true beside it",
        ),
        (
            lambda: check_age(INPROC, True, 5),
            "age_ms has no effect here: inproc:// never leaves its process",
        ),
        (lambda: check_origins(WEB, ("https://a",)), ""),
        (lambda: check_origins(TCP, ()), ""),
        (
            lambda: check_origins(TCP, ("https://a",)),
            "origins are for listening on ws:// and wss:// only: browsers connect nowhere else",
        ),
        (
            lambda: check_origins(WEB, ("https://a",), False),
            "origins are for listening on ws:// and wss:// only: browsers connect nowhere else",
        ),
        (lambda: check_limits(TCP, 1, 1), ""),
        (lambda: check_limits(INPROC, None, None), ""),
        (
            lambda: check_limits(INPROC, 1, None),
            "queue_bytes has no effect here: inproc:// bounds its queues in messages",
        ),
        (
            lambda: check_limits(INPROC, None, 1),
            "message_bytes has no effect here: inproc:// takes messages of any length",
        ),
        (lambda: check_last_values(TCP, False, True), ""),
        (lambda: check_last_values(IPC, False, True), ""),
        (lambda: check_last_values(INPROC, False, False), ""),
        (lambda: check_last_values(TCP, True, False), ""),
        (
            lambda: check_last_values(TCP, True, True),
            "last_values on a trunk: another bus would say all of them again as new",
        ),
        (
            lambda: check_last_values(INPROC, False, True),
            "last_values has no effect here: inproc:// cannot give it to the new peer alone",
        ),
        (lambda: check_fit(5, 5), ""),
        (
            lambda: check_fit(4, 5),
            "queue_bytes must be at least message_bytes: else the longest message never fits",
        ),
        (
            lambda: StreamOptions(queue_bytes=4, message_bytes=5),
            "queue_bytes must be at least message_bytes: else the longest message never fits",
        ),
    ],
)
def test_a_setting_without_an_effect_is_refused(check: Callable[[], object], text: str) -> None:
    assert fault(check) == text


def fault(check: Callable[[], object]) -> str:
    """Return what a check finds wrong; "" if nothing is."""
    try:
        check()
    except ValueError as error:
        return str(error)
    return ""


def test_the_limits_of_an_address_by_default() -> None:
    assert (MESSAGE_BYTES, QUEUE_BYTES, RETRY_MAX_S) == (1 << 20, 8 << 20, 10.0)
    options = StreamOptions()
    assert (options.queue_bytes, options.message_bytes) == (QUEUE_BYTES, MESSAGE_BYTES)
    assert (options.retry_min_s, options.retry_max_s) == (0.1, RETRY_MAX_S)
    assert (options.handshake_s, options.peers) == (5.0, 16_384)
    assert (options.silence_s, options.age_s) == (0.0, 0.0)
    assert not Tls().require_peer_cert
