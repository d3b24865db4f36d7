"""A record of several kinds without a kind: a key that is nearly one is taken for it."""

import pytest

from tests.topologies.support import GATEWAY, said

DEVICE = GATEWAY + "buses: {p: {on: gw}}\ndevices: {d: {on: gw, %s}}\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("tapp: [p]", 'd.tapp: unknown key "tapp"; did you mean "tap"?'),
        ("directory: /x", "d: a device is one of tap, log,"),  # a setting of some devices, and near no kind
        ("frob: [p]", "d: a device is one of tap, log,"),
    ],
)
def test_a_misspelt_kind_is_told_at_its_place(words: str, why: str) -> None:
    assert why in said(DEVICE % words)
