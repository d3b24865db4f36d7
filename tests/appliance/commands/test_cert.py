"""`buscoupler cert`: files are made whole, with their modes, are never replaced without a word, and work."""

import json
import os
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from appliance.certificates.making import authority, gateway, renewed
from appliance.commandline.cli import main
from appliance.machine.inspection import trouble
from bus.errors import BusError
from bus.needs import Certificate, Lasting


def cert(*words: str | Path) -> int:
    return main(["cert", *map(str, words)])


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    assert cert("new", tmp_path / "ca.pem", "--name", "plant") == 0
    made = (
        "gateway",
        tmp_path / "gw-a.pem",
        "--ca",
        tmp_path / "ca.pem",
        "--host",
        "10.0.0.1",
        "--host",
        "gw-a",
    )
    assert cert(*made) == 0
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_are_for_their_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        assert cert("new", tmp_path / "ca.pem") == 0
        assert cert("gateway", tmp_path / "g.pem", "--ca", tmp_path / "ca.pem", "--host", "::1") == 0
    finally:
        os.umask(old)
    assert [mode(tmp_path / name) for name in ("ca.key", "g.key", "ca.pem", "g.pem")] == [0o600] * 2 + [
        0o644
    ] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.key", "ca.pem", "g.key", "g.pem"]


@pytest.mark.parametrize("there", ["gw-a.pem", "gw-a.key"])
@pytest.mark.parametrize("words", [("new",), ("gateway", "--ca", "ca.pem", "--host", "x")])
def test_no_file_is_replaced(
    plant: Path,
    there: str,
    words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(plant)
    other = "gw-a.pem" if there == "gw-a.key" else "gw-a.key"
    (plant / other).unlink()
    before = (plant / there).read_bytes()
    assert cert(words[0], "gw-a.pem", *words[1:]) == 1
    assert "is there already" in capsys.readouterr().err
    assert (plant / there).read_bytes() == before
    assert not (plant / other).exists()


def handshake(server: Path, client: Path, ca: Path, host: str) -> None:
    """Shake hands in memory, with both ends verified."""
    one, other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context, file in ((one, server), (other, client)):
        context.load_cert_chain(file, file.with_suffix(".key"))
        context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [one.wrap_bio(there, back, True), other.wrap_bio(back, there, False, host)]
    for _ in range(4):
        for end in reversed(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert [end.getpeercert() is not None for end in ends] == [True, True]


@pytest.mark.parametrize("host", ["10.0.0.1", "gw-a"])
@pytest.mark.parametrize("renewed", [(), ("gw-a.pem",), ("ca.pem",), ("ca.pem", "gw-a.pem")])
def test_gateways_verify_each_other_also_with_some_of_them_renewed(
    plant: Path, host: str, renewed: tuple[str, ...]
) -> None:
    assert cert("gateway", plant / "gw-b.pem", "--ca", plant / "ca.pem", "--host", "gw-b") == 0
    for name in renewed:
        ca = () if name == "ca.pem" else ("--ca", plant / "ca.pem")
        assert cert("renew", plant / name, *ca, "--days", "900") == 0
        assert (plant / f"{name}.old").exists()
    handshake(plant / "gw-a.pem", plant / "gw-b.pem", plant / "ca.pem", host)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(plant / "gw-a.pem", plant / "gw-b.pem", plant / "ca.pem", "gw-c")


@pytest.mark.parametrize("earlier", [timedelta(0), timedelta(seconds=1), timedelta(hours=23)])
def test_as_many_days_as_the_authority_was_given_before_end_with_it(earlier: timedelta) -> None:
    now = datetime(2026, 11, 28, 23, 59, 59, tzinfo=UTC)
    ca = authority("plant", now - earlier, 900)
    made = gateway("gw-a", ["gw-a"], ca, now, 900)
    again = renewed(made, ca, now, 900)
    for one in (made, again):
        assert one.certificate.not_valid_after_utc == ca.certificate.not_valid_after_utc
    with pytest.raises(BusError, match="renew it first"):
        gateway("gw-a", ["gw-a"], ca, now + timedelta(days=1), 900)


def test_show_says_what_ends_soon_with_its_status(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cert("show", plant / "ca.pem", plant / "gw-a.pem") == 0
    assert cert("renew", plant / "gw-a.pem", "--ca", plant / "ca.pem", "--days", "20") == 0
    capsys.readouterr()
    assert cert("show", plant / "gw-a.pem", "--json") == 1
    row = json.loads(capsys.readouterr().out)
    assert (row["name"], row["hosts"], row["issuer"]) == ("gw-a", ["10.0.0.1", "gw-a"], "plant")
    assert row["state"] == "ends soon"
    assert row["days_left"] in (19, 20)


def test_check_warns_of_the_end_and_finds_nothing_else(plant: Path) -> None:
    file, key = str(plant / "gw-a.pem"), str(plant / "gw-a.key")
    assert trouble(Certificate(file, key)) == trouble(Lasting(file)) == ""
    assert cert("renew", file, "--ca", plant / "ca.pem", "--days", "20") == 0
    assert ", on 2" in trouble(Lasting(file))
    assert trouble(Certificate(file, key)) == ""


WRONG = {
    "no authority": ("gateway", "x.pem", "--host", "x"),
    "an authority that is none": ("gateway", "x.pem", "--ca", "gw-a.pem", "--host", "x"),
    "no file": ("gateway", "x.pem", "--ca", "none.pem", "--host", "x"),
    "no certificate": ("show", "gw-a.key"),
    "the key of another": ("renew", "gw-a.pem", "--key", "ca.key", "--ca", "ca.pem"),
    "another authority": ("renew", "gw-a.pem", "--ca", "other.pem"),
    "longer than the authority": ("renew", "gw-a.pem", "--ca", "ca.pem", "--days", "9999"),
    "a name that is none": ("gateway", "x.pem", "--ca", "ca.pem", "--host", "ü"),
    "a name that is too long": ("new", "x.pem", "--name", "x" * 65),
    "a directory that is not there": ("new", "none/x.pem"),
}


@pytest.mark.parametrize("words", WRONG.values(), ids=list(WRONG))
def test_each_refusal_is_one_line_and_changes_nothing(
    plant: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plant)
    assert cert("new", "other.pem") == 0
    before = {path.name: path.read_bytes() for path in plant.iterdir()}
    capsys.readouterr()
    assert cert(*words) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in plant.iterdir()} == before
