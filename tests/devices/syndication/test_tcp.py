"""Each segment has whole messages for a tagged client: one in Python fails at half of one."""

import asyncio
import logging
import socket
import time
from contextlib import closing

import pytest

pytest.importorskip("lark")
pytest.importorskip("re2")

import itertools

from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.serving.rejections import Rejections
from devices.syndication.bounds import Bounds
from devices.syndication.client import SEGMENT_BYTES, Messages
from devices.syndication.exchange import Exchange
from devices.syndication.state.producers import NOWHERE
from devices.syndication.tcp import TcpClient
from devices.syndication.wire.cutter import Cutter
from devices.syndication.wire.messages import Form, Publication, Subscription


def publications(*sizes: int) -> Messages:
    return Messages(Publication("i", {}, b"\xc5" + size.to_bytes(2) + b"v" * size) for size in sizes)


@pytest.mark.parametrize("sizes", [[1], [10] * 200, [2000], [10, 2000, 10], [2000, 10, 2000], [650] * 5])
def test_parts_are_whole_messages_that_fit_a_segment(sizes: list[int]) -> None:
    messages = publications(*sizes)
    pieces = messages.pieces()
    assert b"".join(data for data, _ in pieces) == messages.packed(Form.TAGGED)
    assert [n for _, n in pieces if n < 1] == []
    assert sum(n for _, n in pieces) == len(sizes)
    for data, count in pieces:
        cutter = Cutter(Bounds())
        assert len(cutter.cut(data)) == count
        assert cutter.waiting == 0
        assert len(data) <= SEGMENT_BYTES or count == 1
    for (first, _), (second, _) in itertools.pairwise(pieces):
        assert len(first) + len(second) > SEGMENT_BYTES
    assert messages.pieces() is pieces


@pytest.mark.parametrize("form", Form)
async def test_a_client_is_written_to_in_parts_if_it_is_tagged(form: Form) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # it keeps writes apart
    ours.setblocking(False)
    reject = Rejections("s", {}, logging.getLogger())
    exchange = Exchange(Bounds(), reject, time.monotonic, NOWHERE)
    loop = asyncio.get_running_loop()
    with closing(theirs):
        connection = Connection(loop, ours, "h:1", Cutter(Bounds()), lambda *_: None, lambda _: None, Stats())
        client = TcpClient(connection, exchange, reject, lambda _: None)
        client.hear([Subscription("", form)])
        while not client.work(time.monotonic()):
            pass
        messages = publications(*[10] * 200)
        client.take(messages)
        exchange.deliver()
        expected = [data for data, _ in messages.pieces()] if form is Form.TAGGED else [messages.packed(form)]
        assert [theirs.recv(1 << 20) for _ in expected] == expected
        connection.close()
