"""Permissions of new files, directories that others could change, and files with secrets."""

import asyncio
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bus.machine import permissions
from bus.machine.permissions import make_private
from bus.transports.sockets import Acceptor

STRANGER = 12_345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_access_that_is_not_given_is_denied(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o600)
    permissions.check_access(tmp_path, os.W_OK | os.X_OK)
    permissions.check_access(tmp_path / "file", os.W_OK)
    with pytest.raises(PermissionError, match=r"Permission denied: '.*file'"):
        permissions.check_access(tmp_path / "file", os.X_OK)


@as_root
def test_access_to_a_disk_that_is_mounted_read_only_fails_for_that_reason(tmp_path: Path) -> None:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(tmp_path)], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        permissions.check_access(tmp_path, os.R_OK | os.X_OK)
        with pytest.raises(OSError, match="Read-only file system"):
            permissions.check_access(str(tmp_path), os.W_OK | os.X_OK)
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.mark.parametrize(
    ("umask", "file", "directory"),
    [(0, 0o640, 0o750), (0o022, 0o640, 0o750), (0o077, 0o600, 0o700), (0o002, 0o640, 0o750)],
)
def test_new_files_are_not_for_others_also_those_of_a_child(
    tmp_path: Path, umask: int, file: int, directory: int
) -> None:
    before = os.umask(umask)
    try:
        with permissions.limited():
            (tmp_path / "file").write_text("x")
            (tmp_path / "directory").mkdir()
            subprocess.run([sys.executable, "-c", f"open({str(tmp_path / 'child')!r}, 'w')"], check=True)
        assert os.umask(umask) == umask, "as it was"
    finally:
        os.umask(before)
    assert [mode(tmp_path / name) for name in ("file", "child")] == [file, file]
    assert mode(tmp_path / "directory") == directory


@pytest.mark.parametrize("umask", [0o077, 0o007, 0o022])
async def test_a_bus_at_a_unix_socket_is_for_those_whom_the_umask_lets_in(
    socket_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        with permissions.limited():
            acceptor = Acceptor(socket.AF_UNIX, str(socket_path))
            acceptor.open(asyncio.get_running_loop(), lambda *_: None, lambda _: None)
            assert mode(socket_path) == 0o777 & ~umask
            acceptor.close()
    finally:
        os.umask(before)


def test_a_private_directory_is_made_for_us_alone_with_all_above_it(tmp_path: Path) -> None:
    root = tmp_path / "run" / "ours"
    before = os.umask(0)
    try:
        assert permissions.make_private(root / "plant" / "gw", root) == root / "plant" / "gw"
    finally:
        os.umask(before)
    assert [mode(path) for path in (root, root / "plant", root / "plant" / "gw")] == [0o700] * 3
    permissions.make_private(root / "plant" / "gw", root)


@pytest.mark.parametrize("bits", [0o777, 0o720, 0o1777, 0o702])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_directory_that_others_can_change_is_refused(tmp_path: Path, bits: int, level: int) -> None:
    root = tmp_path / "ours"
    levels = root, root / "plant", root / "plant" / "gw"
    permissions.make_private(levels[-1], root)
    levels[level].chmod(bits)
    with pytest.raises(PermissionError, match=f"run chmod 0700 {levels[level]}$"):
        permissions.make_private(levels[-1], root)


@as_root
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_directory_that_another_user_made_beforehand_is_refused(tmp_path: Path, level: int) -> None:
    root = tmp_path / "ours"
    levels = root, root / "plant", root / "plant" / "gw"
    permissions.make_private(levels[-1], root)
    os.chown(levels[level], STRANGER, STRANGER)
    with pytest.raises(PermissionError, match=rf"{levels[level]} belongs to another user \({STRANGER}\)"):
        permissions.make_private(levels[-1], root)


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_in_its_place_is_refused(tmp_path: Path, there: bool) -> None:
    target = tmp_path / "target"
    if there:
        target.mkdir(0o700)
    (tmp_path / "ours").symlink_to(target)
    with pytest.raises(PermissionError, match="is a symbolic link: remove it"):
        permissions.make_private(tmp_path / "ours")
    assert list(tmp_path.glob("target/*")) == []


@pytest.mark.parametrize(("bits", "told"), [(0o600, False), (0o640, False), (0o660, True), (0o604, True)])
def test_a_secret_that_others_can_read_is_told(tmp_path: Path, bits: int, told: bool) -> None:
    path = tmp_path / "key.pem"
    path.write_text("secret")
    path.chmod(bits)
    assert permissions.exposure(str(path)).endswith(f"run chmod 0600 {path}") is told


def test_what_is_no_file_is_left_to_those_who_read_it(tmp_path: Path) -> None:
    assert permissions.exposure(str(tmp_path / "none")) == permissions.exposure("/dev/null") == ""


def test_a_directory_that_another_process_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ends removes what is empty, while another one starts."""
    mkdir, left = Path.mkdir, [2]

    def made(path: Path, *words: Any, **more: Any) -> None:
        if path.name == "gw" and left[0]:
            left[0] -= 1
            path.parent.rmdir()
        mkdir(path, *words, **more)

    monkeypatch.setattr(Path, "mkdir", made)
    assert make_private(tmp_path / "run" / "plant" / "gw", tmp_path / "run").is_dir()
    left[0] = 1000
    with pytest.raises(FileNotFoundError):
        make_private(tmp_path / "run" / "other" / "gw", tmp_path / "run")
