"""The thread that makes files of journals: it works until it is to end, and tells what it cannot open."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from capture.files import JOURNAL_SUFFIX, days_directory, journal_directory, name_of
from devices.tap.finisher import Finisher
from devices.tap.names import NamesReader, NamesWriter
from devices.tap.retention import Limits


class Counted(Finisher):
    """A finisher that is to end in its second round, and counts them."""

    def __init__(self, root: Path) -> None:
        names = NamesWriter()
        names.write(["fridge"])
        reader = NamesReader(names.descriptor, days_directory(root), "gw")
        super().__init__(root, "gw", Limits(1, 0.0), reader)
        self.rounds = 0

    def work(self) -> None:
        self.rounds += 1
        self.ending = self.rounds >= 2
        self.wake.set()


def test_it_works_whenever_it_is_woken_and_once_more_when_it_is_to_end(tmp_path: Path) -> None:
    finisher = Counted(tmp_path)
    finisher.wake.set()
    finisher.run()
    assert finisher.rounds == 3


def test_a_journal_that_cannot_be_opened_is_told_also_if_there_is_no_other(tmp_path: Path) -> None:
    finisher = Counted(tmp_path)
    finisher.ending = True  # by which it needs no process
    Finisher.work(finisher)
    assert finisher.fault == ""
    journal = journal_directory(tmp_path, "gw") / f"{name_of(3, 0)}{JOURNAL_SUFFIX}"
    journal.mkdir(parents=True)  # nobody can open it
    Finisher.work(finisher)
    assert finisher.fault == f"{journal}: Is a directory"


@pytest.mark.parametrize(
    ("status", "said", "files", "fault"),
    [
        (0, b'[2, ""]', 2, ""),
        (0, b'[2, "disk full"]', 2, "disk full"),
        (-9, b"", 0, "the process that makes capture files ended with status -9"),
    ],
)
def test_what_the_process_that_makes_files_says_counts_if_it_ended_well(
    status: int, said: bytes, files: int, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(words, status, said)

    monkeypatch.setattr(subprocess, "run", run)
    journal = journal_directory(tmp_path, "gw") / f"{name_of(3, 0)}{JOURNAL_SUFFIX}"
    journal.parent.mkdir(parents=True)
    journal.touch()
    finisher = Counted(tmp_path)
    Finisher.work(finisher)
    assert (finisher.files, finisher.fault) == (files, fault)
