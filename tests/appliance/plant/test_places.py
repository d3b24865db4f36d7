"""Where other gateways are asked: at pages that can be reached from here."""

import pytest

from appliance.plant.places import PagePlace, places
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways:
  here: {address: 10.0.0.1, status: {listen: "http://10.0.0.1:1", token_file: here.token}}
  other: {address: 10.0.0.2, status: %s}
"""


@pytest.mark.parametrize(
    ("page", "url", "token"),
    [
        ('{listen: "http://10.0.0.2:9943", open: true}', "http://10.0.0.2:9943", "None"),
        ('{listen: "http://0.0.0.0:9943", token_file: o.token}', "http://10.0.0.2:9943", "o.token"),
        ('{listen: "http://127.0.0.1:9943"}', "", ""),  # of another machine
        ("{}", "", ""),
        ("{serve: false}", "", ""),
    ],
)
def test_a_page_is_asked_if_it_can_be_reached(page: str, url: str, token: str) -> None:
    found = list(places(loads(TEXT % page, "t.yaml"), "here"))
    assert [(one.gateway, one.url) for one in found] == ([("other", url)] if url else [])
    assert [str(one.token_file).rpartition("/")[2] for one in found] == ([token] if token else [])


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1"])
def test_a_page_at_loopback_is_asked_on_the_same_machine(address: str) -> None:
    text = TEXT.replace("10.0.0.2", address) % '{listen: "http://127.0.0.1:9943"}'
    assert [one.url for one in places(loads(text, "t.yaml"), "here")] == ["http://127.0.0.1:9943"]


SECURE = """\
name: t
gateways:
  here: {status: {listen: "https://127.0.0.1:1", tls: {cert_file: h.pem, ca_file: ca.pem}}}
  b: {status: {listen: "http://127.0.0.1:2"}}
  c:
    status:
      listen: https://127.0.0.1:3
      tls: {cert_file: c.pem, ca_file: ca.pem, require_peer_cert: true}
"""


def test_loopback_is_reached_on_the_same_machine_and_certificates_are_shown_where_asked_for() -> None:
    b, c = places(loads(SECURE, "t.yaml"), "here")
    assert b[:3] == PagePlace("b", "http://127.0.0.1:2", None, None, None)[:3]
    assert b.own is None
    assert c.own is not None
    assert str(c.ca_file).endswith("ca.pem")
