"""Addresses at which every machine that reaches them is let in."""

import pytest

from tests.topologies.support import PAIR
from topologies.checks.exposure import find_exposed
from topologies.loading.loader import loads
from topologies.wiring.segments import wired

CERT = "cert_file: c.pem"
PROVEN = f"{{{CERT}, ca_file: ca.pem, require_peer_cert: true}}"


def exposed(text: str) -> list[str]:
    """Return what `check` says about a topology, which must be warnings."""
    findings = list(find_exposed(wired(loads(PAIR + text))))
    assert {finding.level for finding in findings} <= {"warning"}
    return [finding.text for finding in findings]


def bus(url: str, tls: str = "") -> str:
    return f"buses: {{p: {{on: a, listen: {{url: '{url}'{tls and f', tls: {tls}'}}}}}}}\n"


def side(words: str) -> str:
    return f"buses: {{p: {{on: a}}}}\nbridges: {{x: {{on: a, join: [bus: p, {words}]}}}}\n"


def device(words: str) -> str:
    return f"devices: {{d: {{on: a, {words}}}}}\n"


def broker(tls: str) -> str:
    return f"brokers: {{m: {{on: a, listen: {{url: 'tls+tcp://0.0.0.0:9', tls: {tls}}}}}}}\n"


PROXY = "proxy: 'tcp://127.0.0.1:1', offers: '*', "


@pytest.mark.parametrize(
    ("text", "at", "advice"),
    [
        (bus("tcp://0.0.0.0:5"), "tcp://0.0.0.0:5", "on tls+tcp:// with require_peer_cert"),
        (bus("tcp://[::]:5"), "tcp://[::]:5", "on tls+tcp:// with require_peer_cert"),
        (bus("tcp://*:5"), "tcp://*:5", "on tls+tcp:// with require_peer_cert"),
        (bus("tcp://10.0.0.1:5"), "tcp://10.0.0.1:5", "on tls+tcp:// with require_peer_cert"),
        (bus("tcp://gw-a.plant:5"), "tcp://gw-a.plant:5", "on tls+tcp:// with require_peer_cert"),
        (bus("ws://0.0.0.0:5"), "ws://0.0.0.0:5", "on wss:// with require_peer_cert"),
        (bus("wss://0.0.0.0:5", f"{{{CERT}}}"), "wss://0.0.0.0:5", "give its tls a ca_file and require"),
        (
            bus("tls+tcp://*:5", f"{{{CERT}, ca_file: c}}"),
            "tls+tcp://*:5",
            "give its tls a ca_file and require",
        ),
        (side("url: {address: 'tcp://0.0.0.0:5', mode: listen}"), "tcp://0.0.0.0:5", "on tls+tcp:// with"),
        (side("tcp: {host: '*', port: 5, mode: listen}"), "tcp at *", "let a firewall choose"),
        (side("tmq: {brokers: 'tcp://10.0.0.9:1'}"), "tmq at *", "let a firewall choose"),
        ("brokers: {m: {on: a, listen: 'tcp://0.0.0.0:9'}}\n", "tcp://0.0.0.0:9", "let a firewall choose"),
        (broker(f"{{{CERT}}}"), "tls+tcp://0.0.0.0:9", "give its tls a ca_file and require"),
        (device("syndication: 'tcp://0.0.0.0:4'"), "tcp://0.0.0.0:4", "let a firewall choose"),
        (device("catalog: 'tcp://0.0.0.0:4'"), "tcp://0.0.0.0:4", "let a firewall choose"),
        (
            device(f"{PROXY}dial: 'tls+tcp://h:4', host: 0.0.0.0, tls: {PROVEN}"),
            "proxy at 0.0.0.0",
            "let a firewall choose",
        ),
    ],
)
def test_an_address_that_lets_everybody_in_is_told(text: str, at: str, advice: str) -> None:
    (said,) = exposed(text)
    assert said.startswith(f"every machine that reaches {at} is let in: ")
    assert advice in said


@pytest.mark.parametrize(
    "text",
    [
        bus("tcp://127.0.0.1:5"),
        bus("tcp://127.9.9.9:5"),
        bus("tcp://localhost:5"),
        bus("ws://[::1]:5"),
        bus("ipc:///run/b.sock"),
        bus("inproc://b"),
        bus("tls+tcp://0.0.0.0:5", PROVEN),
        bus("wss://0.0.0.0:5", PROVEN),
        side("url: {address: 'tcp://10.0.0.9:5'}"),
        side(f"url: {{address: 'wss://*:5', mode: listen, tls: {PROVEN}}}"),
        side("tcp: {host: 127.0.0.1, port: 5, mode: listen}"),
        side("tcp: {host: board, port: 5}"),
        side("tmq: {brokers: 'tcp://127.0.0.1:1'}"),
        side("tmq: {brokers: 'tcp://10.0.0.9:1', host: 127.0.0.1}"),
        "brokers: {m: {on: a, listen: 'tcp://127.0.0.1:9'}}\n",
        broker(PROVEN),
        device("catalog: 'tcp://localhost:4'"),
        device(f"{PROXY}listen: 'tls+tcp://*:4', tls: {{{CERT}, ca_file: ca.pem}}"),
    ],
)
def test_loopback_sockets_files_and_certificates_are_in_order(text: str) -> None:
    assert exposed(text) == []


PAGE = "name: t\ngateways: {a: {status: %s}}\nbuses: {p: {on: a}}\n"
OPEN, SECURE = "http://0.0.0.0:8080", "https://0.0.0.0:8080"
READ, UNENCRYPTED = "every machine that reaches", "the token of"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (f"{{listen: '{OPEN}', open: true}}", [f"{READ} the status page at {OPEN} may read it: give it a"]),
        (f"{{listen: '{SECURE}', tls: {{{CERT}}}, open: true}}", [f"{READ} the status page at {SECURE} may"]),
        (f"{{listen: '{OPEN}', token_file: /t}}", [f"{UNENCRYPTED} the status page at {OPEN} crosses"]),
        (f"{{listen: '{SECURE}', tls: {{{CERT}}}, token_file: /t}}", []),
        (f"{{listen: '{SECURE}', tls: {PROVEN}}}", []),
        (f"{{listen: '{OPEN}', open: true, serve: false}}", []),
        ("{listen: 'http://127.0.0.1:8080'}", []),
        ("{}", []),
    ],
)
def test_a_status_page_that_others_can_read_or_whose_token_they_see_is_told(
    page: str, words: list[str]
) -> None:
    found = [finding.text for finding in find_exposed(wired(loads(PAGE % page)))]
    assert len(found) == len(words)
    assert all(text.startswith(start) for text, start in zip(found, words, strict=True))


@pytest.mark.parametrize("text", [broker(f"{{{CERT}}}"), bus("tls+tcp://0.0.0.0:5", f"{{{CERT}}}")])
def test_keys_are_no_advice_for_what_is_no_trunk(text: str) -> None:
    (said,) = exposed(text)
    assert said.endswith("give its tls a ca_file and require_peer_cert: true (docs/security.md)")
