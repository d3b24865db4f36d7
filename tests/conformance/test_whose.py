"""Every listener tells the loop whose a connection is: by that hosts take turns where many wait to be read.

Only the catalog is left out, whose listener is that of the requests of a service.
"""

import asyncio
import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from bus.machine.hosts import HOSTS
from tests.conformance.listeners import KINDS
from tests.helpers.certificates import own_tls
from tests.helpers.peers import until

OTHER = "127.0.0.2"


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"catalog"}))
def test_the_loop_knows_whose_a_connection_is_while_it_lasts(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own_tls(tmp_path)
    with closing(asyncio.new_event_loop()) as loop:
        opened = KINDS[name].open(loop, tmp_path)
        is_local = isinstance(opened.address, str)
        own = f"process {os.getpid()}" if is_local else OTHER
        with closing(opened):
            with socket.socket(socket.AF_UNIX if is_local else socket.AF_INET) as sock:
                if not is_local:
                    sock.bind((OTHER, 0))
                sock.connect(opened.address)
                loop.run_until_complete(until(lambda: own in HOSTS.values()))
            loop.run_until_complete(until(lambda: own not in HOSTS.values()))
        loop.run_until_complete(asyncio.sleep(0))
