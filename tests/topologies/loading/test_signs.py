"""Text in a topology is what can be seen of it, at every key of the schema, unless that is for any text."""

import json

import pytest

from bus.schema import AnyText
from tests.topologies.places import EVERY
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads

TEXTS = [place for place in EVERY if str in place.options]
HIDDEN = ["a\nb", "a\rb", "a\tb", "\x1b[2Jx", "a\x85", "a\u2028b", "a\u202eb", "a\u200bb", "a\ufeff", "a\x7f"]


def said(text: str) -> str:
    with pytest.raises(InvalidTopology) as caught:
        loads(text, "t")
    return str(caught.value)


@pytest.mark.parametrize("text", HIDDEN, ids=ascii)
def test_no_key_takes_a_character_that_nobody_sees(text: str) -> None:
    code = f"U+{next(ord(one) for one in text if not one.isprintable()):04X}"
    for before, behind, _, markers in TEXTS:
        free = any(isinstance(marker, AnyText) for marker in markers)
        found = said(before + json.dumps(text) + behind)
        assert (f"the text holds {code}" in found) is not free, before
        assert all(map(str.isprintable, found.split("\n")))
