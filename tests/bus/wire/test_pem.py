"""Files of PEM that were not written to their end."""

import re

import pytest
import trustme

from bus.wire.pem import CERTIFICATE, KEY, fault

_OWN = trustme.CA().issue_cert("a")
CHAIN = b"".join(one.bytes() for one in _OWN.cert_chain_pems) + trustme.CA().cert_pem.bytes()
SECRET = _OWN.private_key_pem.bytes()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(("data", "holds"), [(CHAIN, CERTIFICATE), (SECRET, KEY)])
def test_a_file_is_whole_or_cut_off(data: bytes, holds: str, end: bytes) -> None:
    data = b"# a note" + end + data.replace(b"\n", end)
    ends = [found.end() for found in re.finditer(rb"-----END [A-Z ]+-----", data)]
    for size in range(len(data) + 1):
        at_a_block = any(at <= size <= at + len(end) for at in ends)
        assert (fault(data[:size], holds) == "") is at_a_block, (size, data[:size][-40:])


def test_notes_between_blocks_may_say_anything_that_is_no_edge_at_the_begin_of_a_line() -> None:
    notes = (
        b"# from -----BEGIN CERTIFICATE----- on",
        b"#-----BEGIN CERTIFICATE-----",
        b"-- ours",
        b"---- ours",
    )
    for note in notes:
        for data in (note + b"\n" + CHAIN, CHAIN + note, CHAIN + note + b"\n" + CHAIN):
            assert fault(data, CERTIFICATE) == "", note
    commented = b"".join(b"# " + line for line in CHAIN.splitlines(keepends=True))
    assert fault(commented, CERTIFICATE) == "holds no certificate in PEM: name another"


def test_the_words_say_what_is_cut_off_and_where() -> None:
    first = CHAIN.index(b"-----END") + 30
    line = CHAIN[:first].count(b"\n") + 1
    assert fault(CHAIN[: first + 50], CERTIFICATE) == (
        f"is cut off: the certificate that begins in line {line} does not end: write it anew"
    )
    assert fault(CHAIN[: first + 4], CERTIFICATE) == f"is cut off in line {line}: write it anew"
    assert fault(CHAIN[:100] + CHAIN, CERTIFICATE).startswith("is cut off: the certificate that begins")
    assert fault(b"\0" * 4096, KEY) == fault(b"", KEY) == "is empty: write it anew"
    assert fault(CHAIN, KEY) == "holds no private key in PEM: name another"
    assert fault(b"no PEM", CERTIFICATE) == "holds no certificate in PEM: name another"


def test_every_kind_of_key_is_one() -> None:
    for kind in ("PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY"):
        text = "".join(
            f"-----BEGIN {one}-----\nAA==\n-----END {one}-----\n" for one in ("EC PARAMETERS", kind)
        )
        assert fault(text.encode(), KEY) == ""
