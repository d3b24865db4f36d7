"""The memory of commands is that of all their processes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from benchmarks import trees
from benchmarks.systems import BenchError

_MIB: Final = 60
_CHILD: Final = f"held = b'x' * ({_MIB} << 20); print(flush=True); input()"
_PARENT: Final = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {_CHILD!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
input()
child.communicate(b"\\n")
"""
_READER: Final = """
import sys
with open(sys.argv[1], "rb", buffering=0) as file:
    file.read(30)
    print(flush=True)
    input()
"""


def test_a_tree_has_the_memory_of_the_children() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        assert list(trees.tree(process.pid)) == [process.pid, child]
        assert _MIB < trees.memory_mib(child) < trees.memory_mib(process.pid)
        process.communicate("\n")
    assert trees.memory_mib(process.pid) == 0


def test_the_part_of_a_file_that_a_process_has_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(120))
    with subprocess.Popen(
        [sys.executable, "-c", _READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        assert trees.part_read(process.pid, path) == 0.25
        assert trees.part_read(os.getpid(), path) == 0
        process.communicate(b"\n")


def test_the_most_memory_is_that_until_each_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, sizes = iter((0.1, 0.4, 0.9)), iter((5.0, 7.0, 6.0))
    monkeypatch.setattr(trees, "memory_mib", lambda pid: next(sizes, 1.0))
    monkeypatch.setattr(trees, "EVERY_S", 0.0)
    used = trees.run([sys.executable, "-c", ""], (0.1, 0.5, 1.0), lambda pid: next(parts, 1.0))
    assert (used.most_mib, used.until) == (7.0, {0.1: 5.0, 0.5: 7.0, 1.0: 7.0})
    assert used.cpu_s > 0


def test_a_command_that_fails_is_named() -> None:
    with pytest.raises(BenchError, match=r"ended with 3: .*exit\(3\)"):
        trees.run([sys.executable, "-c", "exit(3)"])
