"""The tap with its real writer process: what its files hold after it is killed, stopped or refused."""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from pyarrow import parquet

from bus.hub import Hub
from bus.wire.batch import Batch, from_payloads
from capture.batches import batches_of
from capture.reader import message_of
from capture.schema import META_GATEWAY, META_VERSION, VERSION, Kind, Verdict
from devices.child import settle
from devices.tap import recorder as recorder_module
from devices.tap.journal import leftovers
from devices.tap.recorder import Options, Recorder
from devices.tap.ring import RecordPlace
from tests.devices.tap.tap_support import files_in, joined, locate, numbered, rows_in, say
from tests.helpers.peers import until

FAST = Options(ring_bytes=1 << 20, flush_s=0.05, idle=False)


@asynccontextmanager
async def recording(
    directory: Path, options: Options = FAST, gateway: str = "gw"
) -> AsyncIterator[tuple[Recorder, Hub]]:
    """Open a recorder on a hub; when the block ends, all is written."""
    hub, recorder = Hub("plant"), Recorder("recorder", gateway, directory, options)
    recorder.open(asyncio.get_running_loop())
    recorder.watch(hub, "bus plant", locate)
    try:
        yield recorder, hub
    finally:
        recorder.close()
        assert await asyncio.to_thread(settle, 50)


def frames(directory: Path) -> list[bytes]:
    return [message_of(row) for row in rows_in(directory) if row["kind"] == Kind.FRAME]


def has(recorder: Recorder, what: str, count: int) -> bool:
    return bool(recorder.progress.get(what, 0) >= count)


def lost_more_than(recorder: Recorder, losses: int) -> bool:
    return recorder.losses > losses


def writer_of(recorder: Recorder) -> int:
    assert recorder.writer is not None
    assert recorder.writer.pid is not None
    return recorder.writer.pid


async def test_all_that_passes_is_in_a_finished_file(tmp_path: Path) -> None:
    async with recording(tmp_path) as (recorder, hub):
        a, b = joined(hub, "a"), joined(hub, "b")
        say(hub, a, numbered(0, 300))
        say(hub, b, numbered(300, 2))
    assert frames(tmp_path) == numbered(0, 302)
    assert (recorder.captured, recorder.lost, recorder.state) == (302, 0, "closed")
    (file,) = files_in(tmp_path)
    assert file.parent.name == "gateway=gw"
    assert file.name == f"{recorder.boot:020d}-{0:015d}.parquet"
    metadata = parquet.ParquetFile(file).schema_arrow.metadata
    assert metadata[META_GATEWAY.encode()] == b"gw"
    assert metadata[META_VERSION.encode()] == str(VERSION).encode()
    assert not leftovers(tmp_path, "gw")
    assert not hub.taps


async def test_what_came_while_a_bridge_stood_by_is_a_row_that_says_so(tmp_path: Path) -> None:
    async with recording(tmp_path) as (recorder, hub):
        recorder.came("bridge joint", {"can": "can can0"})(from_payloads(numbered(0, 2)), "can")
        say(hub, joined(hub, "a"), numbered(2, 1))
    rows = [row for row in rows_in(tmp_path) if row["kind"] == Kind.FRAME]
    places = [(row["hub"], row["bus"], row["dir"], row["verdict"]) for row in rows]
    assert places[:2] == [("bridge joint", "can can0", 0, int(Verdict.STANDBY))] * 2
    assert [verdict for *_, verdict in places] == [2, 2, 0]


async def test_a_recorder_that_is_stopped_ends_with_a_row_that_says_so(tmp_path: Path) -> None:
    async with recording(tmp_path) as (_, hub):
        say(hub, joined(hub, "a"), numbered(0, 10))
    last = max(rows_in(tmp_path), key=lambda row: row["cap_seq"])
    assert (last["kind"], last["count"], last["reason"]) == (Kind.GAP, 0, "not captured")


async def test_ledgers_are_rows_also_of_a_pipe_that_left(tmp_path: Path) -> None:
    async with recording(tmp_path) as (_, hub):
        a, b = joined(hub, "a"), joined(hub, "b")
        say(hub, a, numbered(0, 10))
        b.stats.drop("queue full", 3)
        a.stats.reject("malformed", 2)
        hub.detach(b)
        say(hub, a, numbered(10, 5))
    told = {
        (row["peer"], row["dir"], row["reason"]): row["count"]
        for row in rows_in(tmp_path)
        if row["kind"] == Kind.LEDGER
    }
    assert told == {
        ("link of a", 0, "received"): 15,
        ("link of a", 0, "malformed"): 2,
        ("link of b", 1, "sent"): 10,
        ("link of b", 1, "queue full"): 3,
    }


async def test_ledgers_of_many_clients_of_a_link_are_one(tmp_path: Path) -> None:
    async with recording(tmp_path) as (_, hub):
        keeper = joined(hub, "keeper")
        for number in range(500):
            client = joined(hub, "client", peer=f"client {number}")
            say(hub, client, numbered(number, 1))
            say(hub, keeper, numbered(number, 2))
            client.stats.sent -= 1
            hub.detach(client)
            client.stats.drop("closed", 1)
    ledgers = [row for row in rows_in(tmp_path) if row["kind"] == Kind.LEDGER]
    told = Counter[tuple[str, str]]()
    for row in ledgers:
        told[row["peer"], row["reason"]] += row["count"]
    assert told["link of client", "received"] == told["link of client", "sent"] == 500
    assert told["link of client", "closed"] == 500
    assert {row["peer"] for row in ledgers} == {"link of client", "link of keeper"}


async def test_files_rotate_and_the_oldest_go(tmp_path: Path) -> None:
    options = FAST._replace(file_bytes=1, keep_bytes=1)
    async with recording(tmp_path, options) as (recorder, hub):
        a = joined(hub, "a")
        for round in range(3):
            say(hub, a, numbered(100 * round, 100))
            await until(partial(has, recorder, "files", round + 1))
    assert len(files_in(tmp_path)) == 1
    assert recorder.progress["deleted"] >= 1


@pytest.mark.parametrize("file_bytes", [1, 1 << 30])
async def test_a_killed_writer_is_replaced_and_nothing_is_lost_or_doubled(
    tmp_path: Path, file_bytes: int
) -> None:
    async with recording(tmp_path, FAST._replace(file_bytes=file_bytes)) as (recorder, hub):
        a, sent = joined(hub, "a"), 0
        for losses in range(3):
            say(hub, a, numbered(sent, 500))
            await until(partial(has, recorder, "written", 500))
            say(hub, a, numbered(sent + 500, 500))
            sent += 1000
            os.kill(writer_of(recorder), signal.SIGKILL)
            await until(partial(lost_more_than, recorder, losses))
            assert recorder.state == "waiting"
            # What a writer that has ended has written.
            assert recorder.counts["written"] >= 500 * (losses + 1)
            await until(lambda: recorder.state == "up")
    assert frames(tmp_path) == numbered(0, sent)
    assert [row["cap_seq"] for row in rows_in(tmp_path)] == list(range(len(rows_in(tmp_path))))


async def test_a_stopped_writer_costs_rows_and_the_capture_says_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with recording(tmp_path) as (recorder, hub):
        a, sent = joined(hub, "a"), 0
        await until(lambda: bool(recorder.progress))
        assert not recorder.is_losing
        os.kill(writer_of(recorder), signal.SIGSTOP)
        while recorder.lost < 1000:
            say(hub, a, numbered(sent, 100))
            sent += 100
        os.kill(writer_of(recorder), signal.SIGCONT)
        await until(lambda: recorder.progress.get("written", 0) >= recorder.captured)
        await until(lambda: recorder.is_losing)
        monkeypatch.setattr(recorder_module, "LOSING_S", 0.0)
        assert not recorder.is_losing  # some time later
        say(hub, a, numbered(sent, 1))
    rows = rows_in(tmp_path)
    gaps = [row for row in rows if row["kind"] == Kind.GAP]
    assert sum(row["count"] for row in gaps) == recorder.lost >= 1000
    assert recorder.captured + recorder.lost == sent + 1
    assert len(frames(tmp_path)) == recorder.captured
    holes = sum(b["cap_seq"] - a["cap_seq"] - 1 for a, b in pairwise(rows))
    assert holes == recorder.lost
    assert frames(tmp_path)[-1] == numbered(sent, 1)[0]


async def test_more_than_a_record_can_count_is_several_gaps_and_recording_goes_on(tmp_path: Path) -> None:
    async with recording(tmp_path) as (recorder, hub):
        a, most = joined(hub, "a"), 0xFFFFFFFF
        await until(lambda: bool(recorder.progress))
        os.kill(writer_of(recorder), signal.SIGSTOP)
        while not recorder.lost:
            say(hub, a, numbered(0, 100))
        for _ in range(3):
            recorder.record(locate_place(), Batch(b"", most))  # some hours at a disk that is full
        os.kill(writer_of(recorder), signal.SIGCONT)
        captured = recorder.captured
        while recorder.captured == captured:
            say(hub, a, numbered(1, 1))
            await asyncio.sleep(0)
    rows = rows_in(tmp_path)
    assert sum(row["count"] for row in rows if row["kind"] == Kind.GAP) == recorder.lost > 3 * most
    assert frames(tmp_path)[-1] == numbered(1, 1)[0]
    assert recorder.fault == ""


def locate_place() -> bytes:
    return RecordPlace("bus plant", "bus plant", "a", 0).encode()


async def test_counts_of_a_hub_that_goes_while_the_ring_is_full_are_recorded_later(tmp_path: Path) -> None:
    async with recording(tmp_path) as (recorder, hub):
        a = joined(hub, "a")
        await until(lambda: bool(recorder.progress))
        os.kill(writer_of(recorder), signal.SIGSTOP)
        while not recorder.lost:
            say(hub, a, numbered(0, 100))
        for _ in range(2000):  # until not even this has room
            recorder.tell("bridge joint", "lease", "x" * 200)
        recorder.unwatch(hub)
        received = a.stats.received
        os.kill(writer_of(recorder), signal.SIGCONT)
        await until(lambda: not recorder.waiting_bytes)
    told = [row["count"] for row in rows_in(tmp_path) if row["reason"] == "received"]
    assert sum(told) == received > 0


async def test_each_file_has_the_topology_that_it_was_recorded_under(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "LEDGER_S", 1000.0)  # no look at the ledgers tells it again
    one, other = {"bus plant": {"gateways": ["gw"]}}, {"bus plant": {"gateways": ["gw", "b"]}}
    async with recording(tmp_path) as (recorder, hub):
        a = joined(hub, "a")
        recorder.describe(one)
        say(hub, a, numbered(0, 10))
        await until(partial(has, recorder, "written", 1))
        os.kill(writer_of(recorder), signal.SIGKILL)
        say(hub, a, numbered(10, 10))  # which only the next writer takes
        await until(partial(lost_more_than, recorder, 0))
        say(hub, a, numbered(20, 10))
        await until(partial(has, recorder, "files", 1))
        recorder.describe(other)
        recorder.describe(dict(other))
        say(hub, a, numbered(30, 10))
    assert frames(tmp_path) == numbered(0, 40)
    assert list(map(topologies, files_in(tmp_path))) == [[one], [one], [other]]


def topologies(path: Path) -> list[object]:
    rows = parquet.ParquetFile(path).read(["contents", "payload"]).to_pylist()
    found = (row for row in rows if row["contents"] and row["contents"]["kind"] == Kind.TOPOLOGY)
    return [json.loads(row["payload"]) for row in found]


@pytest.mark.parametrize("place", ["file/cap", "file"])
async def test_a_place_where_nothing_can_be_written_is_told_before_anything_comes(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    async with recording(tmp_path / place) as (recorder, *_):
        await until(lambda: recorder.state == "waiting")
        assert recorder.fault
        (tmp_path / "file").unlink()
        await until(lambda: recorder.state == "up")


async def test_no_place_to_write_is_a_state_with_retries(tmp_path: Path) -> None:
    root = tmp_path / "capture"
    root.write_text("a file where a directory should be")
    async with recording(root) as (recorder, hub):
        say(hub, joined(hub, "a"), numbered(0, 10))
        await until(lambda: recorder.state == "waiting")
        assert "capture" in recorder.fault
        root.unlink()
        await until(lambda: recorder.state == "up")
    assert frames(root) == numbered(0, 10)


GATEWAY = """
import asyncio, os, signal, sys
from pathlib import Path
from bus.hub import Hub
from bus.wire.batch import from_payloads
from devices.tap.recorder import Options, Recorder
from tests.devices.tap.tap_support import joined, locate, numbered, say

async def main():
    options = Options(flush_s=float(sys.argv[2]), idle=False)
    hub, recorder = Hub("plant"), Recorder("r", "gw", Path(sys.argv[1]), options)
    recorder.open(asyncio.get_running_loop())
    recorder.watch(hub, "bus plant", locate)
    a = joined(hub, "a")
    say(hub, a, numbered(0, 5000))
    while recorder.progress.get("written", 0) < 5000:
        await asyncio.sleep(0.01)
    say(hub, a, numbered(5000, 5000))
    print(recorder.writer.pid, flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)

asyncio.run(main())
"""


async def stopped_gateway(directory: Path, flush_s: float) -> tuple[asyncio.subprocess.Process, int]:
    """Return a gateway that has captured 10,000 messages, 5,000 of them just now, and its writer."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", GATEWAY, str(directory), str(flush_s), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    return process, int(await process.stdout.readline())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_killed_gateway_loses_nothing_that_it_moved(tmp_path: Path) -> None:
    process, writer = await stopped_gateway(tmp_path, 0.05)
    process.kill()
    await process.wait()
    await until(lambda: not alive(writer))
    assert frames(tmp_path) == numbered(0, 10_000)


async def test_killed_with_its_writer_it_loses_the_end_only_and_the_next_finishes_the_file(
    tmp_path: Path,
) -> None:
    process, writer = await stopped_gateway(tmp_path, 0.5)
    os.kill(writer, signal.SIGKILL)
    process.kill()
    await process.wait()
    (journal,) = leftovers(tmp_path, "gw")
    whole = sum(batch.num_rows for batch, _ in batches_of(journal))
    assert whole >= 5000
    with journal.open("ab") as file:
        file.write(b"\xff\xff\xff\xff\x90\x00\x00\x00torn")
    async with recording(tmp_path) as (recorder, _):
        await until(lambda: recorder.progress.get("files", 0) == 1)
    got = frames(tmp_path)
    assert 5000 <= len(got) <= whole
    assert got == numbered(0, len(got))
    assert not leftovers(tmp_path, "gw")


async def test_a_journal_that_somebody_writes_is_left_alone(tmp_path: Path) -> None:
    async with recording(tmp_path) as (first, hub):
        say(hub, joined(hub, "a"), numbered(0, 10))
        await until(lambda: first.progress.get("written", 0) >= 10)
        async with recording(tmp_path) as (_, other):
            say(other, joined(other, "b"), numbered(50, 5))
        assert frames(tmp_path) == numbered(50, 5)
    assert sorted(frames(tmp_path)) == numbered(0, 10) + numbered(50, 5)


async def test_without_its_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bus.extras.find_spec", lambda name: None)
    recorder = Recorder("recorder", "gw", tmp_path)
    with pytest.raises(OSError, match=r"pip install 'buscoupler\[capture\]'"):
        recorder.open(asyncio.get_running_loop())
