"""Planted faults on the page in Chromium: its head, title, picture and tables each tell the cause."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from threading import Event

import pytest

from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.bridges.media.can.can_kernel import standing_in
from tests.helpers.appliances import running
from tests.helpers.browser import Page, browser, needs_chromium
from tests.helpers.peers import SpPeer
from tests.helpers.ports import free_port

pytestmark = [needs_chromium, pytest.mark.timeout(120)]
CAN = """\
name: press
gateways: {{gw: {{status: "http://127.0.0.1:{0}"}}}}
buses: {{hall: {{on: gw, listen: "tcp://127.0.0.1:{1}"}}}}
bridges: {{axis: {{on: gw, join: [{{bus: hall}}, {{can: {{channel: fake0}}, protocol: raw}}]}}}}
alarms: {{stuck: {{link: axis/can, missing_s: 1}}}}
"""
DISK = """\
name: press
gateways: {{gw-a: {{status: "http://127.0.0.1:{0}"}}, gw-b: {{status: {{serve: false}}}}}}
buses:
  a:
    on: gw-a
    listen: "tcp://127.0.0.1:{1}"
    dial: {{url: "tcp://127.0.0.1:{2}", trunk: true, durable: {{directory: {3}/journal, bytes: 4000000}}}}
  b:
    on: gw-b
    listen: {{url: "tcp://127.0.0.1:{2}", trunk: true, durable: {{directory: {4}/other, bytes: 4000000}}}}
devices: {{record: {{on: gw-a, tap: a, directory: {3}/capture, yields: false}}}}
alarms: {{hot: {{bus: a, pattern: oven, above: 5}}}}
"""
OFF = "bus-off: after too many errors nothing goes in or out: look at cable, termination and bit rate"
FULL = "No space left on device"
SHOWN = "document.querySelector({!r}).innerText.includes({!r})"
FITS = """[...document.querySelectorAll(".gateway-box")].every((one) => {
  const box = one.querySelector("rect").getBBox(), ends = (part) => [part.x, part.x + part.width];
  const words = [...one.querySelectorAll("text")].map((text) => text.getBBox());
  const places = [box.x, ...words.flatMap(ends), box.x + box.width];
  return places.every((place, number) => !number || places[number - 1] <= place);
})"""
REASONS = "[...document.querySelectorAll('[data-list=reasons] tr')]"
ONCE = REASONS + ".filter((one) => {}.test(one.innerText)).length === 1"
MARKED = """(([thing, state, words]) => {{
  const one = document.querySelector(`[data-id="${{thing}}"]`);
  return one.classList.contains(state) && one.querySelector("title").textContent.includes(words);
}})({!r})"""


def opened(page: Page, url: str) -> None:
    """Open a page once its gateway answers, and wait until it shows that all is well."""
    page.open(url)
    while not page.run("document.querySelector('#picture') !== null"):
        page.open(url)
    page.until("document.querySelector('#picture svg') !== null")
    page.until("document.querySelector('#health').innerText === '● ok'", 60)
    assert page.run("document.querySelector('#why').innerText") == ""


def tells(page: Page, word: str, cause: str, table: str, marked: list[tuple[str, str]]) -> None:
    """Wait until the head, the title, the reasons, a table and things in the picture tell a cause."""
    page.until(f"document.querySelector('#health-text').innerText === {word!r}", 60)
    page.until(SHOWN.format("#why", cause))
    page.until(f"document.title.includes({word!r}) && document.title.includes({cause!r})")
    page.until(SHOWN.format("[data-list=reasons]", cause))
    page.until(SHOWN.format(f"[data-list={table}]", cause))
    for thing, state in marked:
        page.until(MARKED.format([thing, state, cause]))
    assert page.said == []


async def test_a_controller_that_is_bus_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel, port = standing_in(monkeypatch, tmp_path), free_port()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def look() -> None:
        with browser() as page:
            opened(page, f"http://127.0.0.1:{port}")
            loop.call_soon_threadsafe(kernel.bus_off)
            drawn = [("bridge axis@gw", "bad"), ("bridge axis@gw/1", "bad")]
            tells(page, "trouble", OFF, "reasons", [*drawn, ("gateway gw", "bad")])
            assert page.run(FITS)
            page.until(SHOWN.format("[data-list=rows]", "▲ bus-off"))
            page.until(SHOWN.format("[data-list=rows]", OFF.partition(": ")[2]))
            page.until(SHOWN.format("[data-list=events]", "up: bus-off"))
            page.until(SHOWN.format("[data-list=alarms]", "not up for 1 s"))
            asked = "fetch('{}').then(async (one) => [one.status, await one.text()])"
            assert page.run(asked.format("ready")) == [503, f"bridge axis@gw: {OFF}\n"]
            up = 'buscoupler_link_up{hub="axis",link="1 can/can:socketcan:fake0"} 0.0'
            assert up in page.run(asked.format("metrics"))[1]
            page.said.clear()  # it noted the 503
            for width, height in ((390, 844), (1280, 900)):
                page.size(width, height)
                assert page.run("document.documentElement.scrollWidth <= innerWidth")
            if shots := os.environ.get("SHOTS"):
                page.shot(Path(shots) / "bus-off.png")
            loop.call_soon_threadsafe(kernel.restart)
            page.until("!document.title.includes('bus-off')", 60)
            page.until(SHOWN.format("#why", "axis/can:socketcan:fake0: input was rejected: error frame"))

    async with running(CAN.format(port, free_port())):
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(look)


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """Mount a disk of 2 MB."""
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=False)
    if mounted.returncode:
        pytest.skip("a small disk needs root, to be mounted")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def process(file: Path, name: str, state: Path) -> Iterator[None]:
    """Run a gateway in a process, whose state is in a directory."""
    words = [sys.executable, "-m", "buscoupler", "run", str(file), "--gateway", name]
    words += ["--run-directory", str(file.parent / name)]
    environment = os.environ | {"XDG_STATE_HOME": str(state)}
    null = subprocess.DEVNULL
    with subprocess.Popen(words, env=environment, stdout=null, stderr=null) as running_:
        try:
            yield
        finally:
            running_.kill()


def fill(disk: Path) -> None:
    with (disk / "ballast").open("ab", 0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@contextmanager
def filled(disk: Path, peer: SpPeer) -> Iterator[None]:
    """Keep a disk full while messages come: a journal gives some of it back, and small things still fit.
    An alarm's state changes all the time, for one that was kept before the disk was full needs no place.
    All is free at the end."""
    ended = Event()
    data = [bytes(1000)] * 50

    def go_on() -> None:
        for value in cycle((b"1", b"99")):
            if ended.wait(0.01):
                break
            fill(disk)
            peer.send(*[pack(PUB, Pattern("oven"), one) for one in [*data, value]])

    with ThreadPoolExecutor() as pool:
        done = pool.submit(go_on)
        try:
            yield
        finally:
            ended.set()
            done.result()
            (disk / "ballast").unlink()


def test_a_disk_that_is_full_for_a_tap_a_journal_and_the_states_of_alarms(tmp_path: Path) -> None:
    ports, file = [free_port() for _ in range(3)], tmp_path / "press.yaml"
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(tmp_path / "disk"))
        file.write_text(DISK.format(*ports, disk, tmp_path))
        stack.enter_context(process(file, "gw-b", tmp_path))
        stack.enter_context(process(file, "gw-a", disk / "state"))
        page = stack.enter_context(browser())
        opened(page, f"http://127.0.0.1:{ports[0]}")
        peer = stack.enter_context(closing(SpPeer(f"tcp://127.0.0.1:{ports[1]}")))
        peer.greeting()
        full = stack.enter_context(ExitStack())
        full.enter_context(filled(disk, peer))
        drawn = [("device record", "bad"), ("bus a", "bad"), ("bus a -> bus b", "bad")]
        tells(page, "trouble", FULL, "taps", drawn)
        rows = "[data-list=rows]"
        page.until(SHOWN.format(rows, f"messages are live only: {FULL}"))
        page.until(SHOWN.format(rows, "dial bus b (trunk) journal"))
        page.until(ONCE.format(f"/record.*{FULL}/"))
        page.until(SHOWN.format("[data-list=reasons]", "a restart would lose them"), 60)
        page.until(MARKED.format(["gateway gw-a", "bad", "trouble: "]))
        assert page.run(FITS)
        if shots := os.environ.get("SHOTS"):
            page.shot(Path(shots) / "disk.png")
        full.close()
        peer.send(pack(PUB, Pattern("oven"), b"1"))
        page.until(f"!{SHOWN.format('#why', FULL)}", 60)
        page.until(f"!{SHOWN.format('[data-list=taps]', FULL)}", 60)
        peer.close()
