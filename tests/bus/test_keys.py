"""Keys: files that keep them from others, tags that hold for one purpose, and several keys at once."""

import os
import stat
from pathlib import Path

import pytest

from appliance.commandline import cli
from bus.errors import LinkError
from bus.keys import SECRET_BYTES, TAG_BYTES, Keyring, new_key, read_key


def test_a_new_key_is_random_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    first, second = str(tmp_path / "one.key"), str(tmp_path / "two.key")
    assert new_key(first) != new_key(second)
    assert stat.S_IMODE(os.stat(first).st_mode) == 0o600
    assert len(read_key(first)) == SECRET_BYTES
    assert read_key(first) != read_key(second)


def test_a_key_is_never_written_over_another(tmp_path: Path) -> None:
    path = str(tmp_path / "a.key")
    new_key(path)
    with pytest.raises(LinkError, match="is there already"):
        new_key(path)


def test_a_key_that_every_user_may_read_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "a.key")
    new_key(path)
    for mode in (0o604, 0o602):
        os.chmod(path, mode)
        with pytest.raises(LinkError, match="every user may read"):
            read_key(path)
    os.chmod(path, 0o640)  # a group of the gateway's services
    read_key(path)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff" * 40,
        b"buscoupler-key 1 abc",
        b"buscoupler-key 2 " + b"ab" * 32,
        b"buscoupler-key 1 " + b"ab" * 31,
    ],
)
def test_a_file_without_a_key_is_named(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.key"
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(LinkError, match=r"a\.key: this is no key"):
        read_key(str(path))
    with pytest.raises(LinkError, match=r"b\.key: cannot read"):
        read_key(str(tmp_path / "b.key"))


def test_the_first_key_signs_and_all_verify() -> None:
    old, new = bytes(range(32)), bytes(range(32, 64))
    before, during, after = Keyring([old]), Keyring([new, old]), Keyring([new])
    assert during.sign(b"ab", b"c") == after.sign(b"abc")
    assert len(before.sign(b"")) == TAG_BYTES
    assert during.verify(before.sign(b"abc"), b"abc")
    assert during.verify(after.sign(b"abc"), b"abc")
    assert not before.verify(after.sign(b"abc"), b"abc")
    assert not before.verify(before.sign(b"abc"), b"abd")
    assert not before.verify(b"", b"abc")


def test_a_tag_for_one_purpose_is_valid_for_no_other() -> None:
    keys = Keyring([bytes(32)])
    found = keys.derive(b"trunk", b"1").sign(b"x")
    assert keys.derive(b"trunk", b"1").verify(found, b"x")
    assert not keys.derive(b"trunk1", b"").verify(found, b"x")
    assert not keys.derive(b"lease", b"1").verify(found, b"x")
    assert not keys.verify(found, b"x")


def test_the_command_makes_a_key_and_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "plant.key")
    assert cli.main(["key", "new", path]) == 0
    said = capsys.readouterr().out
    assert cli.main(["key", "name", path]) == 0
    assert capsys.readouterr().out.strip() in said
    assert cli.main(["key", "new", path]) == 1
    assert "is there already" in capsys.readouterr().err
