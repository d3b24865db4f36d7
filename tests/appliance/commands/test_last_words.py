"""What commands have said comes, although the other end talks while they close."""

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.probe.station import Station
from tests.helpers import ROOT

COUNT = 200
GUARD_S, LOOK_S = 30.0, 0.05


@pytest.mark.parametrize(
    "words",
    [
        ["send", "--file", "lines", "{}", "a"],
        ["traffic", "--count", "200", "--rate", "0", "--size", "1000", "{}"],
    ],
    ids=" ".join,
)
def test_what_was_sent_comes_although_the_peer_talks(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines").write_text(f"{'x' * 1000}\n" * COUNT)
    drain = Station.drain
    command = [sys.executable, "-m", "tests.helpers.talker"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, bufsize=1
    ) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        begin = partial(peer.stdin.write, "now\n")
        told = list[int]()

        async def noted(station: Station, limit_s: float) -> bool:
            """Let the peer read once nothing is queued, if the command still waits then."""
            waiting = asyncio.ensure_future(drain(station, limit_s))
            await station.until(lambda: not station.leaf.totals().queued, GUARD_S, LOOK_S)
            await asyncio.sleep(LOOK_S)
            if not waiting.done():
                told.append(begin())
            return await waiting

        monkeypatch.setattr(Station, "drain", noted)
        url = f"tcp://127.0.0.1:{int(peer.stdout.readline())}"
        assert main([word.format(url) for word in words]) == 0
        if not told:
            begin()
        assert int(peer.stdout.readline()) >= COUNT * 1000
