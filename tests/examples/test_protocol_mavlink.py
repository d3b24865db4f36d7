"""The protocol of another distribution, installed: its tests, and the topologies of its page."""

import importlib.util
import re

import pytest

from tests.helpers import ROOT
from tests.helpers.installed import Installed

EXAMPLE = ROOT / "examples" / "protocol-mavlink"
pytestmark = pytest.mark.skipif(not importlib.util.find_spec("pymavlink"), reason="pip install pymavlink")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(EXAMPLE, tmp_path_factory.mktemp("installed"))


@pytest.mark.timeout(120)
def test_it_passes_its_tests(installed: Installed) -> None:
    done = installed.own_tests()
    assert done.returncode == 0, done.stdout


def test_the_topologies_of_its_page_are_valid_and_shown(installed: Installed) -> None:
    found = re.findall(r"```yaml\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
    assert found
    for number, text in enumerate(found):
        file = installed.place / f"{number}.yaml"
        file.write_text(text)
        said = installed.buscoupler("check", str(file))
        assert "COMMAND_LONG acts on uart /dev/ttyACM0" in said
        assert said.endswith(f"{file}: ok\n")
        assert "57600 mavlink" in installed.buscoupler("show", str(file))


def test_a_wrong_setting_is_found_with_its_place(installed: Installed) -> None:
    file = installed.place / "wrong.yaml"
    side = "{uart: /dev/ttyACM0, protocol: {mavlink: {sytem: 1}}}"
    file.write_text(
        "name: t\ngateways: {a: {address: 10.0.0.1}}\nbuses: {plant: {on: a, listen: 'tcp://0.0.0.0:5555'}}\n"
        f"bridges: {{drone: {{on: a, join: [bus: plant, {side}]}}}}\n"
    )
    assert 'unknown key "sytem"; did you mean "system"?' in installed.buscoupler("check", str(file), status=1)
