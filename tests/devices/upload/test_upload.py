"""An upload in a gateway: what it stores, what it says while it cannot, and that kills cost nothing."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from devices.upload.service import Upload
from devices.upload.uploader import Settings
from tests.capture.divided import PARTS, planted
from tests.devices.upload.captures import GATEWAY, mine, rows
from tests.devices.upload.killed import uploading
from tests.devices.upload.running import idle, run, text
from tests.helpers.steps import KILLED, Stepping
from tests.topologies.support import findings, warnings
from topologies.loading.loader import loads
from topologies.picture.show import show


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return planted(tmp_path)


async def test_finished_files_and_names_are_stored_once(root: Path, tmp_path: Path) -> None:
    names = root / "capture" / "_names"
    names.mkdir(exist_ok=True)
    (names / f"{GATEWAY}.txt").write_text("fridge\n")
    there = tmp_path / "there"
    upload = await run(text(root, there), lambda upload: upload.counts["files"] == PARTS)
    assert upload.counts["bytes"] == sum(path.stat().st_size for path in mine(root))
    assert rows(mine(there)) == rows(mine(root))
    assert (there / "_names" / f"{GATEWAY}.txt").read_text() == "fridge\n"
    assert {path.name for path in there.glob("date=*/*")} == {f"gateway={GATEWAY}"}


async def test_a_place_that_is_away_is_said_and_tried_again(root: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "disk"
    blocked.write_text("not a directory")
    there = blocked / "captures"

    def mended(upload: Upload) -> bool:
        if blocked.is_file() and upload.state == "waiting" and upload.counts["waiting"] == PARTS:
            assert str(there) in upload.fault
            blocked.unlink()
        return idle(upload)

    upload = await run(text(root, there), mended)
    assert upload.counts["files"] == PARTS
    assert rows(mine(there)) == rows(mine(root))


async def test_a_spool_that_is_deleted_while_files_wait_is_told_and_filled_again(
    root: Path, tmp_path: Path
) -> None:
    blocked, spool, said = tmp_path / "disk", root / "upload" / "copies", list[str]()
    blocked.write_text("not a directory")

    def mended(upload: Upload) -> bool:
        if not said and upload.counts["waiting"] == PARTS:
            shutil.rmtree(spool)
            said.append("")
        if (
            upload.fault.startswith(f"the spool was deleted or moved away, with {PARTS} files")
            and not said[0]
        ):
            said[0] = upload.fault
            blocked.unlink()
        return idle(upload)

    upload = await run(text(root, blocked / "captures"), mended)
    assert upload.counts["files"] == PARTS
    assert upload.rejected["deleted"] == PARTS


async def test_what_cannot_be_stored_stops_nothing_else(root: Path, tmp_path: Path) -> None:
    there, first = tmp_path / "there", mine(root)[0]
    taken = there / first.relative_to(root / "capture")
    (taken / "a directory in its place").mkdir(parents=True)
    names = root / "capture" / "_names" / f"{GATEWAY}.txt"
    names.parent.mkdir(exist_ok=True)
    names.write_bytes(b"\xff\xfe no text")

    def ready(upload: Upload) -> bool:
        if upload.counts["files"] == PARTS - 1 and taken.is_dir():
            shutil.rmtree(taken)
        return upload.counts["files"] == PARTS and str(names) in upload.fault

    upload = await run(text(root, there), ready)
    assert (upload.counts["waiting"], upload.counts["files"]) == (0, PARTS)
    assert rows(mine(there)) == rows(mine(root))


async def test_a_killed_uploader_counts_no_damaged_file_twice(root: Path, tmp_path: Path) -> None:
    path, killed = mine(root)[1], list[int]()
    path.write_bytes(path.read_bytes()[:200])

    def ready(upload: Upload) -> bool:
        if upload.pid and not killed and upload.rejected and not upload.counts["waiting"]:
            killed.append(upload.pid)
            os.kill(upload.pid, signal.SIGKILL)
        return upload.losses == 1 and upload.state == "up"

    upload = await run(text(root, tmp_path / "there"), lambda upload: ready(upload) and seen_again(upload))
    assert upload.rejected == {"damaged": 1}


def seen_again(upload: Upload) -> bool:
    return upload.report().rejected == {"damaged": 1}


async def test_a_killed_uploader_goes_on(root: Path, tmp_path: Path) -> None:
    killed = list[int]()

    def ready(upload: Upload) -> bool:
        if not killed and upload.pid and upload.counts["files"]:
            killed.append(upload.pid)
            os.kill(upload.pid, signal.SIGKILL)
        return upload.losses == 1 and upload.state == "up" and len(mine(tmp_path / "there")) == PARTS

    upload = await run(text(root, tmp_path / "there"), ready)
    assert rows(mine(tmp_path / "there")) == rows(mine(root))
    assert 1 <= upload.counts["files"] <= PARTS  # what it had stored since its last report does not count


@pytest.mark.timeout(300)
def test_killed_at_twenty_moments(root: Path, tmp_path: Path) -> None:
    """Each kill is at another of 38 steps: before or after a file is taken or stored, or that is noted."""
    for steps in (*range(1, 38, 2), 38):
        there = tmp_path / f"there-{steps}"
        words = json.dumps(Settings(f"copies-{steps}", GATEWAY, str(root), str(there), 1 << 30, 1)._asdict())
        child = Stepping(uploading, words)
        child.reach(steps)
        assert child.kill() == KILLED
        assert Stepping(uploading, words).finish() == 0
        assert rows(mine(there)) == rows(mine(root))
        assert not list(there.rglob("*.tmp"))


def test_check_says_where_nobody_writes() -> None:
    recorder = "recorder: {on: gw-0, tap: p, directory: /captures/}"
    head = "name: t\ngateways: {gw-0: }\nbuses: {p: {on: gw-0}}\n"

    def warned(directory: str) -> list[str]:
        upload = f"copies: {{on: gw-0, upload: {directory}, to: s3://plant}}"
        return [
            line for line in warnings(f"{head}devices: {{{recorder}, {upload}}}\n") if "writes to" in line
        ]

    assert warned("/captures") == []
    assert warned("/elsewhere") == [
        "no tap or log of gateway gw-0 writes to /elsewhere, from which this upload reads"
    ]


def test_it_is_shown(root: Path) -> None:
    written = text(root, "s3://plant/captures", ", credentials: /etc/aws")
    assert findings(written) == []
    assert f"upload of {root}, to s3://plant/captures" in show(loads(written, "t.yaml"))
