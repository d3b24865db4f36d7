"""Sending from a thread: what fails there after the pipe was closed is read, and shown by nobody."""

import gc
import threading
from asyncio import get_running_loop
from typing import Any

from bridges.items import CanFrame
from bridges.media.can.echo import Echoes
from bridges.media.can.medium import Can
from bridges.media.can.shared import Shared
from bridges.media.can.state import BusState
from bridges.media.can.threaded import ThreadSender
from bridges.media.can.transfers import CyphalNode, TransferVoice
from bridges.media.shedding import Shed
from bus.ledger import Stats
from tests.bridges.support import MESSAGE
from tests.helpers.peers import until


class Leaving:
    """A port whose driver fails once the device has been pulled out."""

    is_alone = False

    def __init__(self) -> None:
        self.sending, self.pulled = threading.Event(), threading.Event()

    def deliver(self, frame: CanFrame, timeout_s: float) -> None:
        self.sending.set()
        self.pulled.wait(9)
        raise OSError("no such device")


async def test_a_failure_after_the_close_is_read_and_told_nobody() -> None:
    loop, told, lost = get_running_loop(), list[Any](), list[str]()
    loop.set_exception_handler(lambda _, context: told.append(context))
    options, stats, port = Can(channel="x", interface="slcan", node=1), Stats(), Leaving()
    shared = Shared("can", options, stats, Shed(), 10, BusState(), Echoes())
    sender = ThreadSender(shared, port, TransferVoice(shared, CyphalNode(1)), loop, lost.append)
    stats.offered += 1
    sender.put([MESSAGE])
    await until(port.sending.is_set)
    sender.close("closed")
    port.pulled.set()
    await until(lambda: all(thread.name != "can send_0" for thread in threading.enumerate()))
    gc.collect()
    assert (told, lost, stats.balance()) == ([], [], 0)
