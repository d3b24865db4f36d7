"""A side with a spool at a real mosquitto: losses, bounds, directories that go, and what is refused."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from buscoupler_mqtt.medium import Spool
from gate import Gate
from mosquitto import Mosquitto, needs_mosquitto
from sides import is_up, named, numbered, numbers

from tests.conformance.pair import Side
from tests.helpers.peers import until

pytestmark = needs_mosquitto


@pytest.mark.parametrize("spooled", [False, True])
async def test_a_broker_killed_under_traffic_loses_nothing_that_was_accepted(
    broker: Mosquitto, side: Callable[..., Side], tmp_path: Path, spooled: bool
) -> None:
    """The broker keeps nothing, so its subscriber is back before our side may come in again. The subscriber
    sends nothing, and nothing waits in the broker's kernel: else the last bytes of a killed broker are lost.
    """
    gate = Gate(broker.port)
    await gate.start()
    far = side(broker.url, subscribe=("#",), qos=0)
    spool = Spool(directory=str(tmp_path / "spool")) if spooled else None
    near = side(f"mqtt://127.0.0.1:{gate.port}", spool=spool)
    await is_up(near, far)
    said = 0
    for round_ in range(1, 4):
        end = said + 500
        while said < end:
            near.say(*map(numbered, range(said, said + 10)))
            said += 10
            if said == end - 250:
                await until(lambda: len(far.heard.messages) > 0)
                broker.kill()
                gate.is_open = False
                gate.cut()
            await asyncio.sleep(0)
        broker.start()
        await until(lambda: far.link.losses == round_ and far.link.state == "up")  # noqa: B023
        gate.is_open = True
        await until(lambda: set(numbers(far)) == {*range(said)})  # noqa: B023
    first = list(dict.fromkeys(numbers(far)))
    assert first == [*range(said)]  # in order, if repetitions are left out
    assert near.link.losses == 3
    assert near.count("offered") == said
    await until(lambda: near.count("sent") == said)
    gate.close()


async def test_the_spool_is_bounded_and_drops_are_counted(
    broker: Mosquitto, side: Callable[..., Side], tmp_path: Path
) -> None:
    broker.kill()
    spool = Spool(directory=str(tmp_path / "spool"), bytes=1 << 20)
    near = side(broker.url, spool=spool, queue_bytes=100_000)
    said = 0
    while near.reasons("dropped").get("queue full", 0) < 100:
        near.say(*(numbered(number, 1000) for number in range(said, said + 10)))
        said += 10
        assert said < 50_000
        await asyncio.sleep(0.001)
    await until(lambda: near.link.condition == "spool full")
    assert sum(file.stat().st_size for file in (tmp_path / "spool").glob("*.log")) <= 1 << 20
    kept = near.count("sent") + near.count("queued")
    assert kept + near.reasons("dropped")["queue full"] == said
    broker.start()
    files = near.link.pipe.files
    await until(lambda: files.sent == kept)
    assert files.queued == 0
    await until(lambda: near.link.condition == "")


async def test_a_spool_that_is_moved_away_is_told_and_goes_on_when_it_is_back(
    broker: Mosquitto, side: Callable[..., Side], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("buscoupler_mqtt.spooled._LOOK_S", 0.01)
    monkeypatch.setattr("buscoupler_mqtt.spooled._AGAIN_S", 0.01)
    broker.kill()
    place, away = tmp_path / "spool", tmp_path / "away"
    near = side(broker.url, spool=Spool(directory=str(place)))
    near.say(*map(numbered, range(300)))
    await until(lambda: near.count("sent") == 300)
    place.rename(away)
    await until(lambda: "was deleted or moved away while it was open, with 300 mess" in near.link.condition)
    near.say(numbered(300))
    away.rename(place)
    await until(lambda: near.count("sent") == 301)
    assert near.link.condition == ""
    files = near.link.pipe.files
    place.rename(away)
    await until(lambda: bool(near.link.condition))
    near.close()
    assert files.dropped == {"damaged": 301}
    assert files.balance() == 0


async def test_a_spool_goes_on_where_another_process_has_stopped(
    broker: Mosquitto, side: Callable[..., Side], tmp_path: Path
) -> None:
    broker.kill()
    spool = Spool(directory=str(tmp_path / "spool"), sync=True)
    before = side(broker.url, spool=spool)
    before.say(*map(numbered, range(300)))
    await until(lambda: before.count("sent") == 300)
    before.close()
    broker.start()
    far = side(broker.url, subscribe=("#",))
    await is_up(far)
    after = side(broker.url, spool=spool)
    after.say(numbered(300))
    await until(lambda: numbers(far) == [*range(301)])
    files = after.link.pipe.files
    await until(lambda: files.sent == 301)
    assert files.queued == files.balance() == 0


async def test_a_link_that_is_opened_again_and_again_keeps_no_ledger_of_earlier_spools(
    broker: Mosquitto, side: Callable[..., Side], tmp_path: Path
) -> None:
    """The sums stay: what a spool has when its link closes is dropped as kept, and found by the next one."""
    broker.kill()
    near = side(broker.url, spool=Spool(directory=str(tmp_path / "spool")))
    for number in range(3):
        if number:
            near.open()
        near.say(numbered(number))
        await until(lambda: near.link.pipe.files.queued == number + 1)  # noqa: B023
        near.close()
        await until(lambda: not near.hub._accounts._kept)  # noqa: SLF001
        files = near.hub.accounts()[f"{near.link.name} spool"].stats
        assert (files.dropped["kept"], files.queued, files.balance()) == (sum(range(number + 2)), 0, 0)


async def test_a_spool_that_cannot_be_used_is_a_fault(
    broker: Mosquitto, side: Callable[..., Side], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    near = side(broker.url, spool=Spool(directory=str(tmp_path / "file" / "spool")))
    await until(lambda: near.link.fault.startswith("spool: "))
    near.say(numbered(1))
    assert near.count("queued") == 1
    near.close()
    assert near.reasons("dropped") == {"closed": 1}


async def test_a_message_that_ends_each_connection_is_dropped_and_the_others_arrive(
    broker: Mosquitto, side: Callable[..., Side], tmp_path: Path
) -> None:
    """Mosquitto disconnects whoever publishes more than 200 levels."""
    near = side(broker.url, levels=255, spool=Spool(directory=str(tmp_path / "spool")))
    far = side(broker.url, subscribe=("#",))
    await is_up(near, far)
    near.say(*map(numbered, range(10)), named(*["a"] * 250), *map(numbered, range(10, 20)))
    files = near.link.pipe.files
    await until(lambda: files.dropped == {"refused": 1})
    await until(lambda: set(numbers(far)) == {*range(20)})
    assert "the broker has disconnected us" in near.link.fault
