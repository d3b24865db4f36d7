"""The page of a plant of three gateways: one has another file and is asked at its page, one announces itself
over a trunk, and dies.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.browser import Page, browser, needs_chromium
from tests.helpers.ports import free_port

pytestmark = [needs_chromium, pytest.mark.timeout(180)]
TOKEN = "0123456789abcdef"
TEXT = """\
name: hall
gateways:
  gw-a: {{status: {{listen: "http://127.0.0.1:{0}", token_file: {9}}}}}
  gw-b: {{status: {{serve: false}}}}
  gw-c: {{status: {{listen: "http://127.0.0.1:{2}", token_file: {9}}}}}
brokers: {{main: {{on: gw-a, listen: "tcp://127.0.0.1:{3}", lease_ms: 2000}}}}
buses:
  a: {{on: gw-a, listen: ["tcp://127.0.0.1:{4}", {{url: "tcp://127.0.0.1:{5}", trunk: true}}]}}
  b: {{on: gw-b, listen: "tcp://127.0.0.1:{6}", trunks: a}}
  c: {{on: gw-c, listen: "tcp://127.0.0.1:{7}"}}
bridges:
  motor:
    on: [gw-a, gw-b]
    join:
      - bus: {{gw-a: a, gw-b: b}}
      - multicast: {{group: 239.74.9.9, port: {8}, interface: 127.0.0.1}}
"""


@contextmanager
def running(file: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a gateway in a process, whose local sockets the others do not find."""
    words = [sys.executable, "-m", "buscoupler", "run", str(file), "--gateway", name]
    directory = ["--run-directory", str(file.parent / f"run-{name}")]
    process = subprocess.Popen([*words, *directory], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def plant_of(url: str) -> dict[str, Any]:
    """Return what a gateway knows of its plant."""
    asked = urllib.request.Request(f"{url}/plant.json", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(asked, timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def card(name: str, words: str) -> str:
    """Return the expression that is true once the card of a gateway has some words."""
    cards = "[...document.querySelectorAll('#gateways li')]"
    return f"{cards}.some((one) => one.innerText.startsWith({name!r}) && one.innerText.includes({words!r}))"


def opened(page: Page, url: str) -> None:
    """Open the plant's page once its gateway answers."""
    page.open(f"{url}/?token={TOKEN}")
    while not page.run("document.querySelector('#topology') !== null"):
        page.open(f"{url}/?token={TOKEN}")
    page.open(f"{url}/plant")
    page.until("document.querySelector('#picture svg') !== null")


MANY = """(() => {
  const row = (n) => ({ name: `gw-${n}`, address: "", here: n === 0, state: "answers", ahead_ms: 0,
    word: n === 70 ? "trouble" : "ok", line: n === 70 ? "trouble: a: b" : "ok", product: "1", file: "ab",
    other_file: n === 30, started_ns: 0, time_ns: 9e9, page: n === 5 ? "http://h:1" : "", roles: [] });
  take({ zone_s: 0, topology: "t", gateway: "gw-0", product: "1", word: "trouble", reasons: [], more: 0,
    line: "trouble", more_gateways: 0, marks: {}, gateways: [...Array(100).keys()].map(row) });
  const cards = [...document.querySelectorAll("#gateways li")];
  return [cards.filter((card) => card.className === "small").length,
    cards.slice(0, 2).map((card) => card.firstChild.textContent), cards.at(-1).offsetTop,
    document.querySelectorAll("#gateways a").length, document.documentElement.scrollWidth <= innerWidth];
})()"""


def many_cards(page: Page) -> None:
    """Show a hundred gateways: those that are not well stand before the others, and all fit a wall."""
    for width, height in ((1280, 900), (390, 844), (3840, 2160)):
        page.size(width, height)
        small, first, bottom, links, fits = page.run(MANY)
        assert (small, first, links, fits) == (98, ["gw-30", "gw-70"], 1, True)
    assert bottom < 2160


def head_of_a_gateway(page: Page, url: str, word: str, why: str) -> None:
    """Open the page of a gateway: the worse verdict of its plant is in head, title and icon."""
    page.open(url)
    page.until("document.querySelector('#picture svg') !== null")
    page.until(f"document.title.includes('{word}: plant: {why}')", 60)
    page.until(f"document.querySelector('#why').innerText.startsWith('plant: {why}')")
    page.until(f"document.querySelector('#icon').href.endsWith('icon-{word}.svg')")


def test_one_page_shows_another_file_a_dead_gateway_and_where_it_forwards(tmp_path: Path) -> None:
    token = tmp_path / "page.token"
    token.write_text(TOKEN)
    ports = [free_port() for _ in range(9)]
    file, other = tmp_path / "hall.yaml", tmp_path / "old.yaml"
    file.write_text(TEXT.format(*ports, token))
    other.write_text(TEXT.format(*ports, token) + "# of last week\n")
    url = f"http://127.0.0.1:{ports[0]}"
    with ExitStack() as stack:
        for path, name in ((file, "gw-a"), (other, "gw-c")):
            stack.enter_context(running(path, name))
        second = stack.enter_context(running(file, "gw-b"))
        page = stack.enter_context(browser())
        opened(page, url)
        page.until(card("gw-c", "differs"), 60)
        page.until(card("gw-b", "agrees"), 60)
        page.until("document.querySelector('[data-list=roles]').innerText.includes('gw-a')", 60)
        page.until("document.querySelector('[data-id=\"bus c\"]').classList.contains('ok')", 60)
        assert page.run("document.querySelector('[data-list=reasons]').innerText").count("another file") == 1
        head_of_a_gateway(page, url, "degraded", "gw-c: runs another file")
        second.kill()
        page.open(f"{url}/plant")
        page.until(card("gw-b", "silent"), 60)
        page.until("document.title.startsWith('▲ trouble')", 60)
        for width, height in ((1280, 900), (390, 844), (3840, 2160)):
            page.size(width, height)
            assert page.run("document.documentElement.scrollWidth <= innerWidth")
        many_cards(page)
        head_of_a_gateway(page, url, "trouble", "gw-b: ")
        assert page.said == []
        found = plant_of(url)
    assert {row["name"]: row["state"] for row in found["gateways"]} == {
        "gw-a": "answers", "gw-b": "silent", "gw-c": "answers",
    }  # fmt: skip
    assert [row["other_file"] for row in found["gateways"] if row["state"] == "answers"] == [False, True]
