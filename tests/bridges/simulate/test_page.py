"""The example of docs/simulator.md does what the page says."""

import re
from typing import Any

from tests.helpers import ROOT

PAGE = ROOT / "docs" / "simulator.md"


def test_the_example_of_the_page() -> None:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(compile(code[1], str(PAGE), "exec"), names)
    names["test_a_minute_without_the_panel"]()
