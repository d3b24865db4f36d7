"""`buscoupler cert`: files are made whole, with their modes, are never replaced without a word, and work."""

import json
import os
import ssl
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa, x25519

from appliance.certificates.files import read
from appliance.certificates.hosts import general
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


@pytest.mark.parametrize("days", [1, 30, 825, 3650])
def test_what_is_renewed_lasts_as_long_as_before(
    tmp_path: Path, days: int, capsys: pytest.CaptureFixture[str]
) -> None:
    ca, gateway_file = tmp_path / "ca.pem", tmp_path / "g.pem"
    assert cert("new", ca, "--days", str(days)) == 0
    assert cert("gateway", gateway_file, "--ca", ca, "--host", "gw-a", "--days", str(days)) == 0
    for file, by, place in ((ca, (), "on all gateways"), (gateway_file, ("--ca", ca), "on the gateway")):
        before = x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc
        assert cert("renew", file, *by) == 0
        after = x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc
        assert timedelta() <= after - before < timedelta(hours=1)
        assert f"`buscoupler reload` {place}" in capsys.readouterr().out


def test_a_certificate_with_the_name_of_its_authority_is_renewed_by_it(plant: Path) -> None:
    twin = plant / "twin.pem"
    assert cert("gateway", twin, "--name", "plant", "--ca", plant / "ca.pem", "--host", "gw-a") == 0
    assert cert("renew", twin, "--ca", plant / "ca.pem") == 0
    authority = x509.load_pem_x509_certificate((plant / "ca.pem").read_bytes())
    x509.load_pem_x509_certificate(twin.read_bytes()).verify_directly_issued_by(authority)
    handshake(twin, plant / "gw-a.pem", plant / "ca.pem", "gw-a")
    assert cert("renew", plant / "ca.pem", "--ca", plant / "ca.pem") == 0  # an authority may name itself


def test_all_but_the_renewed_certificate_stays_in_a_file(plant: Path) -> None:
    file = plant / "gw-a.pem"
    first, rest = file.read_bytes(), b"# beside it\r\n" + (plant / "ca.pem").read_bytes()
    file.write_bytes(rest[:13] + first + rest + (plant / "gw-a.key").read_bytes())
    file.chmod(0o600)
    before = file.read_bytes()
    assert cert("renew", file, "--ca", plant / "ca.pem") == 0
    made = file.read_bytes()
    assert made.endswith(rest + (plant / "gw-a.key").read_bytes())
    assert made.startswith(rest[:13])
    assert first not in made
    assert (plant / "gw-a.pem.old").read_bytes() == before
    assert mode(plant / "gw-a.pem.old") == 0o600


@pytest.mark.parametrize(
    "key",
    [ed25519.Ed25519PrivateKey.generate, ed448.Ed448PrivateKey.generate,
     lambda: ec.generate_private_key(ec.SECP521R1()), lambda: rsa.generate_private_key(65537, 1024)],
    ids=["Ed25519", "Ed448", "P-521", "RSA"],
)  # fmt: skip
def test_an_authority_signs_with_any_kind_of_key(
    tmp_path: Path, key: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = key()
    with monkeypatch.context() as patch:
        patch.setattr(ec, "generate_private_key", lambda _: made)
        assert cert("new", tmp_path / "ca.pem") == 0
    assert cert("gateway", tmp_path / "g.pem", "--ca", tmp_path / "ca.pem", "--host", "g") == 0
    assert cert("renew", tmp_path / "g.pem", "--ca", tmp_path / "ca.pem") == 0
    assert cert("renew", tmp_path / "ca.pem") == 0
    ca = read(str(tmp_path / "ca.pem"), str(tmp_path / "ca.key")).certificate
    read(str(tmp_path / "g.pem"), str(tmp_path / "g.key")).certificate.verify_directly_issued_by(ca)


def test_a_key_that_cannot_sign_is_refused() -> None:
    now = datetime(2026, 11, 28, tzinfo=UTC)
    ca = authority("plant", now, 900)._replace(key=x25519.X25519PrivateKey.generate())  # type: ignore[arg-type]
    with pytest.raises(BusError, match="cannot sign"):
        gateway("gw-a", ["gw-a"], ca, now, 9)


@pytest.mark.parametrize(
    ("host", "meant"),
    [("tcp://10.0.0.1:5555", "10.0.0.1"), ("tls+tcp://gw-a:5555/x", "gw-a"), ("10.0.0.1:5555", "10.0.0.1"),
     ("[::1]:5555", "::1"), ("[::1]", "::1"), ("root@gw-a", "gw-a"), ("gw-a.", "gw-a"), (" gw-a ", "gw-a"),
     ("10.0.0.1/24", "10.0.0.1"), ("10.0.0.256", ""), ("a b", ""), ("a,b", ""), ("", ""), ("ü", ""),
     ("a\n", "a"), ("tcp://", ""), ("x" * 64, "")],
)  # fmt: skip
def test_what_is_no_host_is_refused_with_the_one_that_was_meant(host: str, meant: str) -> None:
    with pytest.raises(BusError) as caught:
        general(host)
    assert str(caught.value).partition("ASCII")[2] == (f": do you mean {meant}?" if meant else "")
    assert repr(host) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("host", ["gw-a", "gw_a.plant.example", "*.plant", "10.0.0.1", "::1", "2x.y"])
def test_addresses_and_names_are_hosts(host: str) -> None:
    assert str(general(host).value) == host


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


def test_one_that_begins_later_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, now = tmp_path / "early.pem", datetime.now(UTC)
    file.write_bytes(authority("plant", now + timedelta(days=5), 900).pem())
    assert cert("show", file) == 1
    assert "BEGINS 20" in capsys.readouterr().out
    assert "peers refuse it until then; here it is 20" in trouble(Lasting(str(file)))


def test_check_warns_of_the_end_and_finds_nothing_else(plant: Path) -> None:
    file, key = str(plant / "gw-a.pem"), str(plant / "gw-a.key")
    assert trouble(Certificate(file, key)) == trouble(Lasting(file)) == ""
    assert cert("renew", file, "--ca", plant / "ca.pem", "--days", "20") == 0
    assert ", on 2" in trouble(Lasting(file))
    assert trouble(Certificate(file, key)) == ""


WRONG = {
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


def test_a_number_of_days_has_few_digits(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cert("renew", "x.pem", "--ca", "ca.pem", "--days", "9" * 5000)
    assert "1 to 36500 days" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--host", "x"), ("--ca", "ca.pem")], ids=["no authority", "no host"])
def test_what_is_always_needed_is_not_optional_in_the_usage(
    words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cert("gateway", "x.pem", *words)
    assert ended.value.code == 2
    assert "required: --" in capsys.readouterr().err
