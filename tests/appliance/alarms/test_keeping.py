"""States survive a restart in a file, and a bad file or disk is a fault and no end."""

import asyncio
from pathlib import Path

import pytest

from appliance.alarms.keeping import FileKeeper, packed, state_path, unpacked
from tests.helpers.peers import until


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    keeper = FileKeeper(tmp_path / "state" / "alarms.json")
    assert keeper.load() == b""

    async def run() -> None:
        for data in (b"1", b"2"):
            keeper.save(data, asyncio.get_running_loop())
            await until(lambda: not keeper.busy)
            assert keeper.fault == ""

    asyncio.run(run())
    assert FileKeeper(keeper.path).load() == b"2"
    keeper.finish(b"3")
    assert keeper.load() == b"3"
    assert keeper.path.stat().st_mode & 0o077 == 0


def test_a_place_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no directory")
    keeper = FileKeeper(tmp_path / "state" / "alarms.json")

    async def run() -> None:
        keeper.save(b"1", asyncio.get_running_loop())
        await until(lambda: not keeper.busy)

    asyncio.run(run())
    assert str(keeper.path) in keeper.fault
    keeper.finish(b"1")


def test_what_is_no_file_of_states_has_none() -> None:
    for data in (b"", b'{"alarms": {"a": 1}}'):
        assert unpacked(data) == {}
    for data in (b"{", b"[]", b"{}", b'{"alarms": []}', b"[" * 5000, b"\xff"):
        with pytest.raises(ValueError, match="is damaged"):
            unpacked(data)
    assert unpacked(b'{"alarms": {"a": [1, {"key": []}]}}') == {"a": [{"key": []}]}
    assert unpacked(packed({"a": [{"key": [1]}]})) == {"a": [{"key": [1]}]}


def test_each_process_of_a_gateway_has_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    assert state_path("plant", "gw-a", ("hall",)) == Path("/s/buscoupler/alarms-plant-gw-a-hall.json")
