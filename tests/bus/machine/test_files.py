"""Files of text from any editor, by every reader of a file that a user writes."""

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from appliance.certificates import files
from appliance.commandline.names import names_of
from appliance.commands.send import _from_lines
from appliance.machine.inspection import trouble
from appliance.web.service import _token
from bus.errors import BusError, LinkError
from bus.keys import read_key
from bus.machine.files import NoText, pem, read_bytes, read_text, replace_bytes, text_of, whole, write_new
from bus.needs import Authorities, Certificate, KeyFile, PageToken
from bus.text import MARK
from bus.transports.nng_socket import NngSocket
from bus.transports.options import Tls
from bus.transports.secure import context, trusting
from capture.names import read as read_names
from devices.dbp.proxy import crossing
from tests.helpers.certificates import own_tls
from tests.helpers.rights import LIMITED, needs_setpriv, no_room
from topologies.loading.loader import load
from topologies.model import NamesSpec
from topologies.model.status import StatusSpec
from topologies.names import listed

TOPOLOGY = "name: t\ngateways: {gw: {node: 1}}\nbuses: {p: {on: gw, listen: 'tcp://127.0.0.1:5'}}\n"
KEY = "buscoupler-key 1 " + "ab" * 32 + "\n"
TOKEN = "a-token-of-the-page-1\n"
NAMES = "fridge # the big one\ntemp\n"


class Reader(NamedTuple):
    """A reader of a user's file: a good text for it, and how it reads one. It raises for a bad one."""

    text: str
    read: Callable[[Path], Any]


def says(text: str) -> None:
    if text:
        raise LinkError(text)


def names_in_topology(path: Path) -> list[str]:
    return listed(NamesSpec(file=str(path)))


def names_at_standard_input(path: Path) -> list[int | str]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    try:
        return names_of("-")
    finally:
        sys.stdin = before


def lines_of_send(path: Path) -> list[bytes]:
    async def read() -> list[bytes]:
        messages = _from_lines(os.open(path, os.O_RDONLY), bytes)
        return [line async for some in messages for line in some]

    return asyncio.run(read())


def page_token(path: Path) -> str:
    try:
        return _token(StatusSpec(token_file=str(path)))
    except (OSError, ValueError) as error:
        raise LinkError(str(error)) from error


READERS = {
    "topology": Reader(TOPOLOGY, load),
    "names of a topology": Reader(NAMES, names_in_topology),
    "names of a command": Reader(NAMES, lambda path: names_of(str(path))),
    "names beside captures": Reader(NAMES, read_names),
    "names at standard input": Reader(NAMES, names_at_standard_input),
    "key": Reader(KEY, lambda path: read_key(str(path))),
    "check of a key": Reader(KEY, lambda path: says(trouble(KeyFile(str(path))))),
    "token of the page": Reader(TOKEN, page_token),
    "check of a token": Reader(TOKEN, lambda path: says(trouble(PageToken(str(path))))),
    "lines to send": Reader("one\ntwo\n", lines_of_send),
}
OPAQUE = {"lines to send"}
"""Their bytes are data, so only a mark of another encoding is refused."""
NO_PATH = {"names at standard input", "lines to send"}


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("name", READERS)
def test_a_mark_of_the_byte_order_and_line_ends_of_windows_are_no_part_of_text(
    name: str, tmp_path: Path
) -> None:
    text, read = READERS[name]
    want = read(put(tmp_path / "plain.txt", text.encode()))
    for mark in (b"", MARK):
        for end in ("\n", "\r\n"):
            data = mark + text.replace("\n", end).encode()
            assert read(put(tmp_path / "other.txt", data)) == want
    assert read(put(tmp_path / "other.txt", MARK + text.rstrip().encode())) == want


WRONG = {
    "UTF-16 LE": lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
    "UTF-16 BE": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "Latin-1": lambda text: (text + "# größe\n").encode("latin-1"),
    "a zero": lambda text: (text + "\0").encode(),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", READERS)
def test_another_encoding_is_an_error_with_the_file_and_what_to_do(
    name: str, wrong: str, tmp_path: Path
) -> None:
    text, read = READERS[name]
    path = put(tmp_path / "file.txt", WRONG[wrong](text))
    if name in OPAQUE and not (wrong.startswith("UTF") and "without" not in wrong):
        return
    with pytest.raises(BusError) as caught:
        read(path)
    said = str(caught.value)
    assert "save it as UTF-8" in said, said
    assert "codec" not in said
    assert name in NO_PATH or str(path) in said
    assert said.isprintable()


def of_nng(tls: Tls) -> None:
    with closing(NngSocket()) as made:
        made.dial("tls+tcp://127.0.0.1:5", tls)


PEM: dict[str, Callable[[Tls], object]] = {
    "a listener": lambda tls: context("tls+tcp://127.0.0.1:5", replace(tls, require_peer_cert=True), True),
    "who dials": lambda tls: context("tls+tcp://127.0.0.1:5", tls, False),
    "a proxy": lambda tls: crossing.context(tls, True),
    "a check": lambda tls: says(trouble(Certificate(str(tls.cert_file), str(tls.cert_file)))),
}
ALSO: dict[str, Callable[[Tls], object]] = {
    "a check of authorities": lambda tls: says(trouble(Authorities(str(tls.ca_file)))),
    "a client of a page": lambda tls: trusting(tls.ca_file),
    "a program of NNG": of_nng,
    "the command cert": lambda tls: files.read(str(tls.cert_file), str(tls.cert_file)),
}
CUT = r"own\.pem is cut off: the (?:certificate|private key) that begins in line \d+ does not end"


@pytest.mark.parametrize("name", PEM | ALSO)
def test_a_certificate_or_key_that_is_cut_off_is_named(name: str, tmp_path: Path) -> None:
    """OpenSSL said `pem lib`, and named the certificate where the key was cut off."""
    tls = own_tls(tmp_path)
    use, own = (PEM | ALSO)[name], Path(str(tls.cert_file))
    use(tls)
    if name in ("a check of authorities", "a client of a page"):
        tls = replace(tls, ca_file=tls.cert_file)
    data = own.read_bytes()
    at = data.index(b"-----BEGIN CERT")
    for cut in (data[:-300], data[at:] + data[: at - 50]):  # the certificate, the key behind it
        own.write_bytes(cut)
        with pytest.raises((BusError, ValueError), match=CUT):
            use(tls)


@pytest.mark.parametrize("name", PEM)
def test_a_certificate_behind_a_mark_is_told_and_not_passed_over(name: str, tmp_path: Path) -> None:
    """OpenSSL would take the second authority of two and say nothing."""
    tls = own_tls(tmp_path)
    PEM[name](tls)
    for file in filter(None, (tls.ca_file, tls.cert_file)):
        put(Path(file), MARK + Path(file).read_bytes())
    with pytest.raises(LinkError, match="begins with a byte order mark: save it as UTF-8 without BOM"):
        PEM[name](tls)


@pytest.mark.parametrize("name", [name for name in READERS if name not in NO_PATH | {"names of a command"}])
def test_no_reader_waits_for_a_pipe(name: str, tmp_path: Path) -> None:
    """A pipe is a way to give a topology or names to a command, but none that a file may name."""
    path = tmp_path / "pipe.txt"
    os.mkfifo(path, 0o600)
    if name in ("topology", "names beside captures"):
        return
    with pytest.raises(BusError, match="it is no regular file"):
        READERS[name].read(path)


def test_a_file_is_read_within_its_bound(tmp_path: Path) -> None:
    path = put(tmp_path / "x", b"12345")
    assert read_text(path, 5) == "12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        read_text(path, 4)
    with pytest.raises(OSError, match="no regular file"):
        read_bytes(tmp_path)
    with pytest.raises(FileNotFoundError):
        pem(str(tmp_path / "none"))


def test_the_line_of_a_fault_is_told() -> None:
    for data, line in ((b"a\nb\n\xe4", 3), (b"\xef\xbb\xbfa\n\xe4", 2), (b"a\n\0", 2), (b"\xff\xfea", 1)):
        with pytest.raises(NoText) as caught:
            text_of(data)
        assert caught.value.line == line


@pytest.mark.parametrize("path", [".", "/", "./", ""])
def test_a_new_file_in_the_place_of_a_directory_is_an_error_of_the_system(path: str) -> None:
    with pytest.raises(IsADirectoryError):
        write_new(path, b"")


@pytest.mark.parametrize("write", [write_new, replace_bytes])
@pytest.mark.parametrize("name", ["none/file", "text/file", "there"])
def test_an_error_names_the_file_that_was_meant(
    write: Callable[[str, bytes], None], name: str, tmp_path: Path
) -> None:
    (tmp_path / "text").touch()
    (tmp_path / "there").mkdir()
    path = str(tmp_path / name)
    with pytest.raises(OSError, match=r"such|exists|directory") as caught:
        write(path, b"")
    assert (caught.value.filename, caught.value.filename2) == (path, None)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["text", "there"]


def test_a_file_that_could_not_be_written_whole_is_as_it_was(tmp_path: Path) -> None:
    there, new = tmp_path / "there", tmp_path / "new"
    there.write_text("old")
    for path in (there, new):
        with no_room(), pytest.raises(OSError, match="too large"), whole(path) as file:
            file.write(b"x" * 100_000)
        with pytest.raises(ZeroDivisionError), whole(path) as file:
            file.write(b"%d" % (1 // 0))
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"there": "old"}


def test_a_file_that_is_replaced_keeps_its_permissions_and_its_links(tmp_path: Path) -> None:
    there, link = tmp_path / "there", tmp_path / "link"
    there.write_text("old")
    there.chmod(0o640)
    link.symlink_to(there)
    with whole(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert (there.read_text(), there.stat().st_mode & 0o777) == ("new", 0o640)


def test_what_is_no_regular_file_is_written_in_place(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with whole(tmp_path / "pipe") as file:
        file.write(b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    with pytest.raises(OSError, match="No space left"), whole("/dev/full") as file:
        file.write(b"new")
    with pytest.raises(IsADirectoryError), whole(tmp_path):
        pass


@needs_setpriv
def test_a_file_in_a_directory_that_takes_no_other_is_written_in_place(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("old")
    tmp_path.chmod(0o555)
    code = "import sys; from bus.machine.files import whole\nwith whole(sys.argv[1]) as f: f.write(b'new')"
    subprocess.run([*LIMITED, sys.executable, "-c", code, str(there)], check=True)
    assert there.read_text() == "new"
    tmp_path.chmod(0o755)
