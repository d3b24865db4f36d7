"""A status page over real sockets: who may read it, what it answers, and its bounds."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.status.shape import fits
from appliance.status.snapshot import snapshot
from appliance.web import server, stream
from tests.appliance.web.web_support import gateway, get, say, status_of
from tests.helpers.appliances import reloaded
from tests.helpers.clocks import wait_in_vain
from tests.helpers.peers import Ear, until
from topologies.checks.exposure import find_exposed
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads
from topologies.wiring.segments import wired


async def test_it_answers_the_whole_status_and_each_file() -> None:
    async with gateway() as running:
        status = await status_of(running.page.url)
        assert fits(status)
        assert status["page"] == running.page.url
        for path in (
            "/",
            "/page.css",
            "/page.js",
            "/curves.js",
            "/icon-trouble.svg",
            "/history.json",
            "/drawing.css",
            "/icon.svg",
            "/topology.svg",
            "/schema.json",
        ):
            answer = await get(running.page.url, path)
            assert answer.status == 200
            assert "default-src 'none'" in answer.head
            assert answer.body
        assert (await get(running.page.url, "/nothing")).status == 404


async def test_the_picture_comes_alone_with_its_style_and_narrow() -> None:
    async with gateway() as running:
        wide, narrow, alone = [
            (await get(running.page.url, f"/topology.svg{query}")).body for query in ("", "?narrow", "?alone")
        ]
        assert b'viewBox="0 0 824 ' in wide
        assert b'viewBox="0 0 400 ' in narrow
        assert b"<style>" in alone
        assert b"<style>" not in wide


async def test_health_and_readiness() -> None:
    async with gateway() as running:
        assert (await get(running.page.url, "/healthz")).body == b"ok\n"
        assert (await get(running.page.url, "/ready")).body == b"ready\n"
        assert json.loads((await get(running.page.url, "/health")).body)["word"] == "ok"
        running.parts["bus plant"].links[0].close()
        answer = await get(running.page.url, "/ready")
        assert (answer.status, answer.body) == (503, b"bus plant: closed\n")


async def test_health_is_200_with_its_reasons_in_trouble_too() -> None:
    async with gateway() as running:
        running.parts["bus plant"].links[0].close()
        for later_s in (0.0, 4.0, 8.0):
            now_s = asyncio.get_running_loop().time() + later_s
            running.monitor.scan(now_s)
            running.health.look(now_s, lambda now_s=now_s: running.monitor.concerns(now_s))  # type: ignore[misc]
        answer = await get(running.page.url, "/health")
        said = json.loads(answer.body)
        assert (answer.status, said["word"], len(said["reasons"])) == (200, "trouble", 1)
        metrics = (await get(running.page.url, "/metrics")).body.decode()
        assert 'buscoupler_health{buscoupler_health="trouble"} 1.0' in metrics
        assert [event.cause for event in running.monitor.events if event.kind == "health"] == [said["line"]]


async def test_curves_are_there_from_before_the_page_was_opened() -> None:
    async with gateway() as running:
        take = running.view().curves
        assert take is not None
        await until(lambda: any(curve["points"][-1] == 0 for curve in take("queued", "15m")()["curves"]))
        made = json.loads((await get(running.page.url, "/history.json?kind=queued&span=15m")).body)
        assert (made["kind"], made["unit"], made["step_s"], made["more"]) == ("queued", "messages", 1, 0)
        assert {len(curve["points"]) for curve in made["curves"]} == {900}
        answer = await get(running.page.url, "/history.json?kind=nothing")
        assert (answer.status, b"transit" in answer.body) == (404, True)


async def test_it_is_only_to_be_read() -> None:
    async with gateway() as running:
        for method in ("POST", "PUT", "DELETE"):
            assert (await get(running.page.url, "/", "Content-Length: 0", method=method)).status == 405
        answer = await get(running.page.url, "/", method="HEAD")
        assert (answer.status, answer.body) == (200, b"")
        assert b" 413 " in await say(
            running.page.url, b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi"
        )


@pytest.mark.parametrize(
    "junk", [b"\x00\xff\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 20_000, b"GET\r\n\r\n"]
)
async def test_what_is_no_request_is_refused_and_the_connection_ends(junk: bytes) -> None:
    async with gateway() as running:
        assert (await say(running.page.url, junk)).startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))
        assert (await get(running.page.url, "/healthz")).status == 200


async def test_another_http_than_1_is_refused_and_the_connection_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "REQUEST_S", 60.0)  # longer than `say` waits: the end does not come by it
    async with gateway() as running:
        assert b" 505 " in await say(running.page.url, b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n")


async def test_names_of_others_and_pages_of_others_are_refused() -> None:
    async with gateway() as running:
        url = running.page.url
        assert (await get(url, "/", host="evil.example:80")).status == 403
        assert (await get(url, "/", host="localhost")).status == 200
        assert (await get(url, "/", "Origin: http://evil.example")).status == 403
        assert (await get(url, "/", f"Origin: {url}")).status == 200
        assert (
            await get(url, "/status.json", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors")
        ).status == 403
        assert (await get(url, "/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")).status == 200
        assert b" 400 " in await say(url, b"GET / HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n")


async def test_a_token_is_asked_for_in_three_ways(tmp_path: Path) -> None:
    token = "0123456789abcdef"
    (tmp_path / "token").write_text(f"{token}\n")
    async with gateway(
        "{{{{listen: 'http://127.0.0.1:{{0}}', token_file: {}}}}}".format(tmp_path / "token")
    ) as one:
        url = one.page.url
        assert (await get(url, "/")).status == 401
        assert (await get(url, "/?token=0123456789abcdee")).status == 401
        assert (await get(url, "/healthz")).status == 200
        assert (await get(url, "/status.json", f"Authorization: Bearer {token}")).status == 200
        answer = await get(url, f"/?token={token}")
        assert answer.status == 303
        assert "HttpOnly; SameSite=Strict" in answer.head
        assert (await get(url, "/", f"Cookie: a=b; buscoupler_token={token}")).status == 200


async def test_it_takes_a_free_port_if_the_default_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr("topologies.model.status.DEFAULT", f"http://127.0.0.1:{taken.getsockname()[1]}")
        async with gateway("{{}}") as running:
            assert running.page.url
            assert not running.page.url.endswith(f":{taken.getsockname()[1]}")
            assert (await get(running.page.url, "/healthz")).status == 200


async def test_a_port_of_choice_that_is_taken_leaves_the_gateway_without_a_page() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with gateway(f"http://127.0.0.1:{taken.getsockname()[1]}") as running:
            assert running.page.url == ""
            assert running.parts["bus plant"].links[0].state == "up"


async def test_no_more_connections_than_the_bound_and_the_oldest_that_asked_nothing_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "CONNECTIONS", 1)
    async with gateway() as running:
        host, port = running.page.url.rpartition("/")[2].split(":")
        reader, held = await asyncio.open_connection(host, int(port))
        await until(lambda: running.page.report().counts["connections"] == 1)
        assert (await get(running.page.url, "/healthz")).status == 200
        assert await reader.read() == b""
        assert running.page.report().rejected == {"closed to make room": 1}
        held.close()


async def test_a_connection_that_asked_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS", 1)
    async with gateway() as running:
        host, port = running.page.url.rpartition("/")[2].split(":")
        reader, held = await asyncio.open_connection(host, int(port))
        held.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"ok\n")
        assert (await get(running.page.url, "/healthz")).status == 503
        assert running.page.report().rejected == {"connections full": 1}
        held.close()
        await until(lambda: running.page.report().counts["connections"] == 0)
        assert (await get(running.page.url, "/healthz")).status == 200


async def test_who_is_slow_to_ask_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_S", 0.2)
    async with gateway() as running:
        wait_in_vain(monkeypatch)  # else the page could close before it has read, by a reset
        assert await say(running.page.url, b"GET / HTTP/1.1\r\nHost: lo") == b""


async def test_events_go_on_and_a_page_that_reads_nothing_is_closed_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "TICK_S", 0.001)
    monkeypatch.setattr(stream, "QUEUE_BYTES", 10_000)
    async with gateway() as running:
        host, port = running.page.url.rpartition("/")[2].split(":")
        reader, good = await asyncio.open_connection(host, int(port))
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)  # some kB wait, not megabytes
        small.connect((host, int(port)))
        _, slow = await asyncio.open_connection(sock=small, limit=1)
        for writer in (good, slow):
            writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")

        async def read() -> None:
            while await reader.read(1 << 16):
                pass

        reading = asyncio.create_task(read())
        await until(lambda: running.page.report().rejected.get("slow reader") == 1)
        assert running.page.report().counts["viewers"] == 1
        reading.cancel()
        good.close()
        slow.close()


async def test_last_values_drops_and_the_far_gateway_are_in_it() -> None:
    async with gateway() as running:
        hub = running.parts["bus plant"].hub
        from bus.wire.frame import PUB, pack
        from bus.wire.pattern import Pattern

        Ear(hub).say(pack(PUB, Pattern("alert"), b"<b>hot</b>"))
        status = await status_of(running.page.url)
        values = status["values"]
        assert isinstance(values, list)
        assert (values[0]["pattern"], values[0]["data"], values[0]["on"]) == ("alert", "<b>hot</b>", "plant")
        assert list(status["silent"]) == ["far"]  # type: ignore[call-overload]


async def test_a_reload_moves_the_page() -> None:
    async with gateway() as running:
        before = running.page.url
        text = "name: plant\ngateways: {gw: {status: {serve: false}}, far: {}}\nbuses: {plant: {on: gw}}\n"
        changes = reloaded(running, loads(text, "t.yaml"))
        assert "changed gateway: status" in [change.line() for change in changes]
        assert running.page.url == ""
        assert snapshot(running.view())["brokers"] == []
        with pytest.raises(ConnectionError):
            await get(before, "/healthz")


async def test_a_reload_takes_renewed_tokens_and_no_others(tmp_path: Path) -> None:
    token, people = tmp_path / "token", tmp_path / "people"
    files = f"token_file: {token}, ack_file: {people}"

    def write(read: str, name: str) -> None:
        token.write_text(read * 16)
        people.write_text(f"{name} {name * 16}")

    write("0", "a")
    async with gateway(f"{{{{listen: 'http://127.0.0.1:{{0}}', {files}}}}}") as one:
        for read, name, old_read, old_name in ("0", "a", "1", "b"), ("1", "b", "0", "a"):
            for shown, status in (read, 200), (old_read, 401):
                assert (await get(one.page.url, "/", f"Authorization: Bearer {shown * 16}")).status == status
            for shown, status in (name, 404), (old_name, 401):
                headers = "Content-Length: 0", f"Authorization: Bearer {shown * 16}"
                assert (await get(one.page.url, "/alarms/x/ack", *headers, method="POST")).status == status
            assert reloaded(one, one.topology) == []
            write(old_read, old_name)
            lines = [change.line() for change in reloaded(one, one.topology)]
            assert lines == ["changed gateway: files of status"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("http://0.0.0.0:9943", "can be reached by other machines"),
        ("ftp://127.0.0.1:1", "is no address of a page"),
        ("https://127.0.0.1:9943", "needs tls"),
        ("{listen: 'http://127.0.0.1:9943', tls: {cert_file: a.pem}}", "tls is for https:// only"),
    ],
)
def test_what_cannot_be_meant_is_refused(status: str, words: str) -> None:
    with pytest.raises(InvalidTopology, match=words):
        loads(f"name: p\ngateways: {{gw: {{status: {status}}}}}\nbuses: {{b: {{on: gw}}}}\n", "t.yaml")


def test_the_published_schema_is_that_of_the_shape_and_holds_for_a_status() -> None:
    from jsonschema import Draft202012Validator

    from appliance.status.schema import schema, table, text
    from tests.appliance.status.status_support import appliance, status_of
    from tests.helpers import ROOT

    assert (ROOT / "appliance/status/schema.json").read_text() == text(), "run: make generated"
    assert table() in (ROOT / "docs/status.md").read_text()
    Draft202012Validator.check_schema(schema())
    validator = Draft202012Validator(schema())
    status = status_of(appliance())
    assert list(validator.iter_errors(json.loads(json.dumps(status)))) == []
    assert list(validator.iter_errors(status | {"pid": "7"}))


async def test_top_and_show_ask_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    async with gateway() as running:
        file = tmp_path / "t.yaml"
        file.write_text("name: plant\ngateways: {gw: {}, far: {}}\nbuses: {plant: {on: gw}}\n")
        for words, shown in (
            (["top", running.page.url], "plant on gw: run"),
            (["top", "--json", running.page.url], '"gateway": "gw"'),
            (["show", str(file), "--live", running.page.url], "● bus plant: 1 peer"),
            (["show", str(file), "--svg", "--live", running.page.url], "this gateway"),
        ):
            assert await asyncio.to_thread(main, words) == 0
            assert shown in capsys.readouterr().out
    for asked in (["top"], ["show", str(file), "--live"]):
        assert await asyncio.to_thread(main, [*asked, "http://127.0.0.1:9"]) == 1
        assert "http://127.0.0.1:9: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("{listen: 'http://0.0.0.0:9943', open: true}", "every machine that reaches the status page"),
        ("{listen: 'http://0.0.0.0:9943', token_file: t}", "crosses the network unencrypted"),
        ("http://127.0.0.1:9943", ""),
    ],
)
def test_check_warns_of_a_page_that_others_can_read(status: str, words: str) -> None:
    topology = loads(f"name: p\ngateways: {{gw: {{status: {status}}}}}\nbuses: {{b: {{on: gw}}}}\n", "t.yaml")
    found = [finding.text for finding in find_exposed(wired(topology))]
    assert [words in text for text in found] == ([True] if words else [])
