"""TLS on a non-blocking socket, between two of ours and against Python's own blocking one."""

import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from bus.errors import LinkError
from bus.transports.options import Tls
from bus.transports.secure import SecureSocket, context, dated
from tests.helpers.certificates import own_tls

URL = "tls+tcp://127.0.0.1:5"
RECORD_BYTES = 16 * 1024


class Ends(NamedTuple):
    """Two ends of one connection, and the plain sockets below them."""

    near: SecureSocket
    far: SecureSocket
    wires: tuple[socket.socket, socket.socket]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return own_tls(tmp_path_factory.mktemp("tls"))


def connect(near: Tls, far: Tls, name: str = "127.0.0.1") -> Ends:
    """Return a listener's end and a dialer's that have not said anything yet."""
    wires = socket.socketpair()
    for wire in wires:
        wire.setblocking(False)
    scratch = memoryview(bytearray(100_000))
    return Ends(
        SecureSocket(wires[0], context(URL, near, True), True, None, scratch),
        SecureSocket(wires[1], context(URL, far, False), False, name, scratch),
        wires,
    )


def waits(step: Callable[[], object]) -> bool:
    """Return whether a step would block."""
    try:
        step()
    except BlockingIOError:
        return True
    return False


def shake(ends: Ends) -> None:
    for _ in range(20):
        if not [end for end in (ends.far, ends.near) if waits(end.shake)]:
            return
    raise AssertionError("the handshake does not end")


@pytest.fixture
def ends(tls: Tls) -> Iterator[Ends]:
    made = connect(tls, tls)
    shake(made)
    yield made
    made.near.close()
    made.far.close()


@pytest.fixture
def narrow(ends: Ends) -> Ends:
    """Ends whose sockets take little at once."""
    for wire in ends.wires:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return ends


def read(end: SecureSocket, size: int = 1 << 20) -> bytes:
    try:
        return end.recv(size)
    except BlockingIOError:
        return b""


def test_however_little_the_wire_takes_all_comes_out_once_and_in_order(narrow: Ends) -> None:
    chance = random.Random(1)
    data = chance.randbytes(1_000_000)
    sent, heard, blocked = 0, bytearray(), 0
    while sent < len(data):
        rest = memoryview(data)[sent:]
        try:
            part = rest[: chance.choice((2, 100, 70_000, len(rest)))]
            more = rest[len(part) : len(part) + chance.randrange(100_000)]
            sent += narrow.near.sendmsg([part, more]) if chance.random() < 0.5 else narrow.near.send(part)
        except BlockingIOError:
            blocked += 1
            heard += read(narrow.far, chance.choice((1, 1000, 200_000)))
    while some := read(narrow.far, 200_000):
        heard += some
    assert bytes(heard) == data
    assert blocked > 10
    assert sent == len(data)


def test_what_is_left_encrypted_makes_the_sender_wait_and_is_bounded(narrow: Ends) -> None:
    data = bytes(10 << 20)
    sent = narrow.near.send(data)
    assert 0 < sent < 1 << 20
    assert waits(lambda: narrow.near.send(data[sent:]))
    heard = 0
    while waits(lambda: narrow.near.send(b"")):
        heard += len(read(narrow.far))
    while some := read(narrow.far):
        heard += len(some)
    assert heard == sent + 1  # its last byte is on the way, and counts once it is skipped
    assert narrow.near.send(data[sent : sent + 1]) == 1
    assert read(narrow.far) == b""


def test_one_read_takes_several_records_and_tells_of_those_that_are_left(ends: Ends) -> None:
    for number in range(20):
        assert ends.near.send(b"%03d" % number) == 3
    assert read(ends.far, 30) == b"".join(b"%03d" % number for number in range(10))
    assert ends.far.pending
    assert read(ends.far, 31) == b"".join(b"%03d" % number for number in range(10, 20))
    assert not ends.far.pending
    assert waits(lambda: ends.far.recv(1))


def test_what_was_said_before_the_end_is_read_and_then_the_end(ends: Ends) -> None:
    ends.near.send(b"last words")
    ends.near.close()
    assert ends.far.recv(100) == b"last words"
    assert ends.far.recv(100) == b""
    assert ends.far.recv(100) == b""


def test_an_end_without_a_word_is_an_end_too(ends: Ends) -> None:
    ends.near.send(b"cut")
    ends.wires[0].close()
    assert read(ends.far) == b"cut"
    assert ends.far.recv(1) == b""


def test_a_record_that_was_changed_on_the_way_is_an_error(ends: Ends) -> None:
    ends.near.send(b"right")
    ends.wires[0].send(b"\x17\x03\x03\x00\x20" + bytes(32))
    assert ends.far.recv(100) == b"right"
    with pytest.raises(OSError, match="TLS: decryption failed or bad record mac"):
        ends.far.recv(100)


def test_a_stranger_is_no_peer(tls: Tls) -> None:
    ends = connect(tls, tls)
    ends.wires[1].send(b"\x00SP\x00\x00\x70\x00\x00")
    with pytest.raises(OSError, match="TLS: "):
        ends.near.shake()
    ends.near.close()
    ends.far.close()


@pytest.mark.parametrize(("said", "words"), [(b"", "closed by the peer"), (b"\x16\x03", "TLS handshake")])
def test_a_peer_that_leaves_during_the_handshake(tls: Tls, said: bytes, words: str) -> None:
    ends = connect(tls, tls)
    ends.wires[1].send(said)
    ends.wires[1].close()
    with pytest.raises(OSError, match=words):
        ends.near.shake()
    ends.near.close()


def failure(ends: Ends) -> str:
    """Return why a handshake fails."""
    try:
        shake(ends)
        for end in (ends.near, ends.far):  # TLS 1.3: the dialer is done before its certificate is judged
            read(end)
    except OSError as error:
        return str(error)
    finally:
        ends.near.close()
        ends.far.close()
    return ""


def test_whom_a_dialer_does_not_trust(tls: Tls, tmp_path: Path) -> None:
    stranger = own_tls(tmp_path)
    assert "the certificate is refused" in failure(connect(stranger, tls))
    assert "the certificate is refused: Hostname mismatch" in failure(connect(tls, tls, "other.example"))
    assert failure(connect(tls, tls, "localhost")) == ""


def test_whom_a_listener_does_not_trust(tls: Tls, tmp_path: Path) -> None:
    strict = Tls(tls.ca_file, tls.cert_file, require_peer_cert=True)
    assert failure(connect(strict, tls)) == ""
    assert "certificate" in failure(connect(strict, Tls(tls.ca_file)))
    trustme.CA().issue_cert("x").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "other.pem"))
    assert "certificate" in failure(connect(strict, Tls(tls.ca_file, str(tmp_path / "other.pem"))))


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3", "TLSv1_1"])
def test_other_programs_with_tls_1_2_and_1_3_and_no_older(tls: Tls, version: str) -> None:
    ends, heard = connect(tls, tls), list[bytes]()
    made = ssl.create_default_context(cafile=tls.ca_file)
    with (
        pytest.warns(DeprecationWarning, match="TLSv1_1")
        if version == "TLSv1_1"
        else pytest.MonkeyPatch.context()
    ):
        made.minimum_version = made.maximum_version = ssl.TLSVersion[version]

    def talk() -> None:
        ends.wires[1].settimeout(10)
        try:
            with made.wrap_socket(ends.wires[1], server_hostname="localhost") as far:
                far.sendall(bytes(100_000))
                heard.append(far.recv(10))
        except OSError as error:
            heard.append(str(error).encode())

    ends.wires[0].settimeout(10)
    thread = threading.Thread(target=talk)
    thread.start()
    if version == "TLSv1_1":
        with pytest.raises(OSError, match="TLS: "):
            ends.near.shake()
    else:
        assert ends.near.shake()
        while sum(map(len, heard)) < 100_000:
            heard.append(read(ends.near, RECORD_BYTES))
        ends.near.send(b"thanks")
    ends.near.close()
    thread.join()
    assert (heard[-1] == b"thanks") is (version != "TLSv1_1")


@pytest.mark.parametrize("field", ["ca_file", "cert_file", "key_file"])
@pytest.mark.parametrize("text", [None, "no PEM"])
def test_files_that_are_of_no_use_are_named(tls: Tls, tmp_path: Path, field: str, text: str | None) -> None:
    path = tmp_path / "bad.pem"
    if text is not None:
        path.write_text(text)
    strict = Tls(tls.ca_file, tls.cert_file, require_peer_cert=True)
    with pytest.raises(LinkError) as caught:
        context(URL, replace(strict, **{field: str(path)}), listens=True)  # type: ignore[arg-type]
    assert URL in str(caught.value)
    assert str(path) in str(caught.value)
    assert "errno" not in str(caught.value).lower()


def test_a_listener_needs_a_certificate() -> None:
    with pytest.raises(LinkError, match="needs cert_file"):
        context(URL, Tls(), listens=True)


@pytest.mark.parametrize(
    "words", ["certificate has expired", "certificate is not yet valid", "Hostname mismatch"]
)
def test_a_certificate_out_of_date_names_the_clock(words: str) -> None:
    found = dated(words)
    assert ("a clock is wrong: here it is" in found) == ("mismatch" not in words)
