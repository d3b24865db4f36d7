"""Two gateways with a durable trunk: what is said while the other end is away comes when it is back, once."""

from pathlib import Path

from bus.wire.frame import pack
from tests.bridges.durable.gateways import Gateway, account
from tests.helpers.peers import until


def reading(number: int) -> bytes:
    return pack(1, (7, 8), b"%d" % number)


async def test_what_is_said_while_the_end_is_there_comes_at_once(tmp_path: Path) -> None:
    a, b = Gateway("gw-a", tmp_path / "a", "gw-b"), Gateway("gw-b", tmp_path / "b")
    await a.is_open()
    await b.is_open()
    listening = b.listen()
    link = a.dial(listening.url, "gw-b")
    await until(lambda: a.end("gw-b").line is not None, what="the end")
    for number in range(20):
        a.say(reading(number))
    await until(lambda: len(b.heard.messages) == 20, what="the readings")
    assert b.heard.messages == [reading(number) for number in range(20)]
    await until(lambda: a.end("gw-b").files.sent == 20, what="the acknowledgement")
    stats, files = account(a, link)
    assert (stats.offered, stats.sent, stats.balance()) == (20, 20, 0)
    assert (files.offered, files.sent, files.queued, files.balance()) == (20, 20, 0, 0)
    await a.close()
    await b.close()


async def test_what_is_said_while_the_end_is_away_comes_when_it_is_back_and_once(tmp_path: Path) -> None:
    a, b = Gateway("gw-a", tmp_path / "a", "gw-b"), Gateway("gw-b", tmp_path / "b")
    await a.is_open()
    await b.is_open()
    listening = b.listen()
    link = a.dial(listening.url, "gw-b")
    a.say(*(reading(number) for number in range(500)))
    await until(lambda: len(b.heard.messages) == 500, what="the readings")
    for outage in range(1, 4):
        listening.close()
        await until(lambda: a.end("gw-b").line is None, what="the loss")
        a.say(*(reading(500 * outage + number) for number in range(500)))
        listening = b.listen(listening.url)
        expected = 500 * (outage + 1)
        await b.hears(expected)
    assert b.heard.messages == [reading(number) for number in range(2000)]
    await until(lambda: a.end("gw-b").files.queued == 0, what="the acknowledgement")
    stats, files = account(a, link)
    assert (stats.balance(), files.balance(), files.sent) == (0, 0, 2000)
    await a.close()
    await b.close()
