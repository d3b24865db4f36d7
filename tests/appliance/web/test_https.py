"""A status page on https, with real certificates: programs, a browser, and who does not speak TLS."""

import asyncio
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.compose import Appliance
from appliance.status.remote import ask_page
from appliance.status.snapshot import snapshot
from appliance.status.terminal import services
from appliance.web import server
from bus.transports.options import Tls
from tests.appliance.web.web_support import gateway, say
from tests.helpers.appliances import reloaded
from tests.helpers.browser import browser, needs_chromium
from tests.helpers.certificates import named_tls, own_tls
from tests.helpers.peers import until

TOKEN = "0123456789abcdef"


@asynccontextmanager
async def secured(tls: Tls, more: str = "") -> AsyncIterator[Appliance]:
    """Run a gateway with a page on https."""
    words = [f"cert_file: {tls.cert_file}"]
    words += [f"ca_file: {tls.ca_file}, require_peer_cert: true"] if tls.require_peer_cert else []
    status = f"{{{{listen: 'https://127.0.0.1:{{0}}', tls: {{{{{', '.join(words)}}}}}{more}}}}}"
    async with gateway(status) as running:
        assert running.page.url.startswith("https://127.0.0.1:")
        yield running


def fetched(url: str, ca_file: str | None, own: str | None = None) -> dict[str, object]:
    """Return the status at a page, as any program would ask for it."""
    context = ssl.create_default_context(cafile=ca_file)
    if own is not None:
        context.load_cert_chain(own)
    with urllib.request.urlopen(f"{url}/status.json", timeout=10, context=context) as answer:
        found: dict[str, object] = json.load(answer)
        return found


async def test_programs_read_it_if_they_trust_its_authority(tmp_path: Path) -> None:
    tls = own_tls(tmp_path)
    (tmp_path / "other").mkdir()
    stranger = own_tls(tmp_path / "other")
    async with secured(tls) as running:
        url = running.page.url
        assert (await asyncio.to_thread(fetched, url, tls.ca_file))["page"] == url
        assert (await asyncio.to_thread(ask_page, url, tls.ca_file))["page"] == url
        for ca_file in (stranger.ca_file, None):
            with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
                await asyncio.to_thread(fetched, url, ca_file)
        await until(lambda: running.page.report().rejected == {"failed TLS handshake": 2})


async def test_a_reload_serves_a_renewed_certificate(tmp_path: Path) -> None:
    tls = own_tls(tmp_path)
    async with secured(tls) as running:
        own_tls(tmp_path)  # of another authority, at the same paths
        lines = [change.line() for change in reloaded(running, running.topology)]
        assert lines == ["changed gateway: files of status"]
        assert await asyncio.to_thread(fetched, running.page.url, tls.ca_file)


async def test_who_speaks_no_tls_gets_nothing_and_disturbs_nobody(tmp_path: Path) -> None:
    tls = own_tls(tmp_path)
    async with secured(tls) as running:
        url = running.page.url
        for junk in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(300)):
            assert b"HTTP" not in await say(url, junk)
        await until(lambda: running.page.report().rejected == {"failed TLS handshake": 2})
        await until(lambda: running.page.report().counts["connections"] == 0)
        assert (await asyncio.to_thread(fetched, url, tls.ca_file))["page"] == url


async def test_who_is_slow_to_greet_counts_as_a_connection_and_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REQUEST_S", 0.3)
    async with secured(own_tls(tmp_path)) as running:
        host, port = running.page.url.rpartition("/")[2].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await until(lambda: running.page.report().counts["connections"] == 1)
        assert await asyncio.wait_for(reader.read(-1), 10) == b""
        await until(lambda: running.page.report().rejected == {"failed TLS handshake": 1})
        writer.close()


async def test_readers_must_show_a_certificate_if_the_topology_says_so(tmp_path: Path) -> None:
    served, reader = named_tls(tmp_path, "reader")
    (tmp_path / "other").mkdir()
    stranger = own_tls(tmp_path / "other")
    async with secured(served) as running:
        url, ca_file = running.page.url, str(tmp_path / "ca.pem")
        assert (await asyncio.to_thread(fetched, url, ca_file, reader.cert_file))["page"] == url
        for own in (stranger.cert_file, None):
            with pytest.raises(OSError, match=r"alert|reset|closed|EOF|Broken pipe"):
                await asyncio.to_thread(fetched, url, ca_file, own)


async def test_a_wrong_key_leaves_the_gateway_without_a_page(tmp_path: Path) -> None:
    tls = replace(own_tls(tmp_path), cert_file=str(tmp_path / "ca.pem"))
    status = f"{{{{listen: 'https://127.0.0.1:{{0}}', tls: {{{{cert_file: {tls.cert_file}}}}}}}}}"
    async with gateway(status) as running:
        assert running.page.url == ""
        (shown,) = (one for one in snapshot(running.view())["brokers"] if one["kind"] == "page")
        assert list(services({"brokers": [shown]})) == ["  status page, which could not be opened"]
        assert running.parts["bus plant"].links[0].state == "up"


@needs_chromium
@pytest.mark.timeout(60)
async def test_a_browser_refuses_a_stranger_and_shows_a_page_that_it_trusts(tmp_path: Path) -> None:
    tls = own_tls(tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    async with secured(tls, f", token_file: {tmp_path / 'token'}") as running:
        await asyncio.to_thread(look, running.page.url)
        assert running.page.report().counts["requests"] > 0


def look(url: str) -> None:
    with browser() as page:
        assert page.ask("Page.navigate", url=url)["errorText"] == "net::ERR_CERT_AUTHORITY_INVALID"
        page.ask("Security.setIgnoreCertificateErrors", ignore=True)  # stands for an authority that it knows
        page.open(f"{url}/?token={TOKEN}")
        page.until("document.querySelector('#picture svg') !== null")
        page.until("document.querySelector('#connection-text')?.textContent === 'live'")
        assert page.run("location.href") == f"{url}/"
        (cookie,) = page.ask("Network.getCookies")["cookies"]
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
