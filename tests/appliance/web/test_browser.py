"""The status page in Chromium, over real gateways with real traffic."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from appliance.status.view import Around, View
from appliance.web.service import StatusPage, prepare
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.web.web_support import gateway
from tests.helpers import ROOT
from tests.helpers.browser import Page, browser, needs_chromium
from tests.helpers.peers import Ear
from tests.helpers.ports import free_port
from topologies.loading.loader import load
from topologies.model.status import StatusSpec
from topologies.picture.drawing import draw

pytestmark = [needs_chromium, pytest.mark.timeout(120)]
PAIR = """\
name: pair
gateways:
  gw-a: {{status: "http://127.0.0.1:{0}"}}
  gw-b: {{status: "http://127.0.0.1:{1}"}}
brokers: {{main: {{on: gw-b, listen: "tcp://127.0.0.1:{2}", lease_ms: 2000}}}}
buses:
  left: {{on: gw-b, listen: "tcp://127.0.0.1:{3}"}}
  right: {{on: gw-b, listen: "tcp://127.0.0.1:{4}"}}
bridges:
  joint: {{on: [gw-a, gw-b], pattern: motor, join: [{{bus: left}}, {{bus: right}}]}}
"""
DIAL = """\
name: pair
gateways:
  gw-a: {{status: "http://127.0.0.1:{0}"}}
  gw-b: {{status: "http://127.0.0.1:{1}"}}
buses:
  left: {{on: gw-a, listen: "tcp://127.0.0.1:{2}", dial: "tcp://127.0.0.1:{3}"}}
  right: {{on: gw-b, listen: "tcp://127.0.0.1:{3}"}}
"""
LOSE_THE_NEXT_ANSWER = """(() => {
  const asked = fetch;
  window.fetch = () => { window.fetch = asked; return Promise.reject(new TypeError("lost")); };
  document.querySelector("#picture").replaceChildren();
  drawn = null;
})()"""
LATER = """(() => {
  const asked = fetch;
  window.fetch = async (...words) => {
    const data = await (await asked(...words)).json();
    return { ok: true, json: async () => ({ ...data, end_ns: data.end_ns + 6e11 }) };
  };
})()"""
"""Curves come as if they were asked for ten minutes later."""
HOSTILE = "<img src=x onerror=alert(1)>"
STATE = "document.querySelector('[data-id=\"{}\"]')?.classList.contains('{}')"


@contextmanager
def running(file: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a gateway in a process."""
    words = [sys.executable, "-m", "buscoupler", "run", str(file), "--gateway", name]
    directory = ["--run-directory", str(file.parent / name)]
    process = subprocess.Popen([*words, *directory], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def is_in(page: Page, thing: str, state: str) -> None:
    """Wait until something in the picture is in a state."""
    page.until(STATE.format(thing, state), 60)


def opened(page: Page, url: str) -> None:
    """Open a page once its gateway answers."""
    page.open(url)
    while not page.run("document.querySelector('#picture') !== null"):
        page.open(url)
    page.until("document.querySelector('#picture svg') !== null")


def test_a_takeover_moves_the_role_and_a_lost_link_turns(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(5)]
    file = tmp_path / "pair.yaml"
    file.write_text(PAIR.format(*ports))
    with running(file, "gw-b"), running(file, "gw-a") as best, browser() as page:
        opened(page, f"http://127.0.0.1:{ports[1]}")
        is_in(page, "bridge joint@gw-a", "ok")
        is_in(page, "bridge joint@gw-b", "ready")
        best.kill()
        is_in(page, "bridge joint@gw-b", "ok")
        page.until("document.querySelector('[data-list=roles]').innerText.includes('active')")
        page.until("document.querySelector('#told').textContent.includes('bridge joint is active')")


def test_an_unplugged_link_turns_and_comes_back(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(4)]
    file = tmp_path / "pair.yaml"
    file.write_text(DIAL.format(*ports))
    with running(file, "gw-a"), browser() as page:
        edge = "bus left -> bus right"
        with running(file, "gw-b"):
            opened(page, f"http://127.0.0.1:{ports[0]}")
            is_in(page, edge, "ok")
            page.until("document.querySelector('#health').innerText === '● ok'")
        is_in(page, edge, "bad")
        assert page.until("document.title.startsWith('▲')")
        with running(file, "gw-b"):
            is_in(page, edge, "ok")


def test_a_fault_from_before_the_page_was_opened_is_on_the_curve(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(4)]
    file = tmp_path / "pair.yaml"
    file.write_text(DIAL.format(*ports))
    url = f"http://127.0.0.1:{ports[0]}"
    with running(file, "gw-a"), browser() as page:
        opened(page, url)
        page.until("document.title.startsWith('▲ trouble')", 60)
        opened(page, url)
        page.until("window.buscouplerCurves?.()[0]?.some(([, points]) => points > 3)", 60)
        page.until("document.querySelectorAll('.legend button').length > 0")
        assert "left" in page.run("document.querySelector('[data-list=reasons]').innerText")
        assert page.until("window.buscouplerMarks().some((time) => Math.abs(Date.now() - time) < 300000)")
        assert page.run("document.querySelector('#icon').href").endswith("icon-trouble.svg")
        assert page.said == []


async def test_hostile_names_are_text_and_it_fits_a_phone_in_both_themes() -> None:
    async with gateway() as one:
        hub = one.parts["bus plant"].hub
        near, far = Ear(hub), Ear(hub)
        near.link, far.link = HOSTILE, "far"
        near.say(pack(PUB, Pattern("alert"), HOSTILE.encode()))
        one.monitor.record("drop", HOSTILE, HOSTILE, **{HOSTILE: 1})
        await asyncio.to_thread(look, one.page.url)


def look(url: str) -> None:
    with browser() as page:
        page.size(390, 844)
        opened(page, url)
        page.until(f"document.body.textContent.includes({HOSTILE!r})")
        assert page.run("document.querySelectorAll('img, iframe, script:not([src])').length") == 0
        fits_the_phone(page)
        assert page.run("document.querySelectorAll('th:not([scope])').length") == 0
        landmarks = "['header', 'main', 'footer', '#told[aria-live=polite]']"
        assert page.run(f"{landmarks}.every(one => document.querySelector(one))")
        grounds = set()
        for scheme in ("light", "dark"):
            page.prefer(scheme)
            grounds.add(page.run("getComputedStyle(document.body).backgroundColor"))
        assert len(grounds) == 2
        page.press("Tab", 9)
        assert page.run("document.activeElement.className") == "skip"
        page.run("document.querySelector('#theme').click()")
        assert page.run("document.documentElement.dataset.theme") == "light"
        another_kind_is_never_shown_as_the_one_before(page)
        page.run("source.close(); source.onerror()")  # as after an answer of 503: the browser gives up
        page.until("document.querySelector('#connection-text').textContent === 'live'")
        assert page.said == []


def another_kind_is_never_shown_as_the_one_before(page: Page) -> None:
    """Check that a chart forgets its curves with their kind, and that a paused axis of time stays."""
    page.until("window.buscouplerCurves().every(Boolean)")
    page.run("document.querySelector('#pause').click(); window.before = String(window.buscouplerReach())")
    page.run(LATER)
    kind = "document.querySelector('#kind-2')"
    change = f"{kind}.value = 'out'; {kind}.dispatchEvent(new Event('change'))"
    assert page.run(f"{change}; !window.buscouplerCurves()[1]")  # at once: the next ones come soon
    page.until("window.buscouplerCurves().every(Boolean)")
    assert page.run("String(window.buscouplerReach()) === window.before")


def fits_the_phone(page: Page) -> None:
    """Check that nothing scrolls sideways, and that the smallest text in the picture can be read."""
    wide = "[...document.querySelectorAll('*')].filter(one => one.scrollWidth > one.clientWidth + 1"
    wide += " && getComputedStyle(one).overflowX === 'auto').map(one => one.id || one.textContent)"
    assert page.run(wide) == []
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    sizes = "[...document.querySelectorAll('#picture text')].filter(one => one.textContent.trim())"
    sizes += ".map(one => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a)"
    assert page.run(f"Math.min(...{sizes})") >= 9.5


@pytest.mark.parametrize("file", ["cold-chain", "rooms"])
async def test_a_topology_with_many_links_fits_a_phone_and_a_wide_window(file: str) -> None:
    whole = draw(load(str(ROOT / f"topologies/{file}.yaml"))).as_record()
    page = StatusPage()
    spec = StatusSpec(listen=f"http://127.0.0.1:{free_port()}")
    view = View(program="run", name=file, around=lambda _: Around(drawing=whole))
    page.follow(prepare(spec, "127.0.0.1"), view, asyncio.get_running_loop())
    try:
        await asyncio.to_thread(turned, page.url, len(whole["nodes"]))
    finally:
        page.close()


def turned(url: str, nodes: int) -> None:
    with browser() as page:
        page.size(390, 844)
        opened(page, url)
        assert page.run("document.querySelectorAll('#picture .node').length") == nodes
        fits_the_phone(page)
        page.size(1000, 844)
        page.until("document.querySelector('#picture svg').viewBox.baseVal.width > 700")
        page.size(390, 844)
        page.until("document.querySelector('#picture svg').viewBox.baseVal.width < 500")
        page.run(LOSE_THE_NEXT_ANSWER)
        page.until("document.querySelector('#picture svg') !== null")


async def test_a_thousand_pipes_and_many_links_do_not_make_a_frame_long() -> None:
    async with gateway() as one:
        hub = one.parts["bus plant"].hub
        ears = [Ear(hub) for _ in range(1000)]
        for number, ear in enumerate(ears):
            ear.link = f"link {number % 300}"
        await asyncio.to_thread(measure, one.page.url)


def measure(url: str) -> None:
    with browser() as page:
        opened(page, url)
        page.until("document.querySelectorAll('[data-list=rows] tbody tr').length > 0")
        assert page.run("document.querySelectorAll('[data-list=rows] tbody tr').length") <= 100
