"""Variables in values: what they become, and where an error is when they cannot be replaced."""

from pathlib import Path

import pytest
import yaml
from yaml.nodes import ScalarNode

from appliance.commandline.cli import main
from bridges.media.uart.medium import Uart
from bus.errors import TopologyError
from topologies.findings import InvalidTopology
from topologies.loading.document import CHARACTERS_MAX
from topologies.loading.loader import loads
from topologies.loading.variables import Expanded, Use, expanded, uses_in
from topologies.model import gateway_here

HEAD = "name: t\ngateways: {gw: {address: 127.0.0.1}}\nbuses: {p: {on: gw}}\n"
LINE = HEAD + "bridges:\n  b:\n    on: gw\n    join:\n      - bus: p\n      - uart:\n"


def uart(text: str, **variables: str) -> Uart:
    medium = loads(LINE + text, "t.yaml", variables).bridges["b"].at("gw")[1].medium
    assert isinstance(medium, Uart)
    return medium


def faults(text: str, **variables: str) -> list[str]:
    with pytest.raises(InvalidTopology) as caught:
        loads(text, "t.yaml", variables)
    return [str(finding) for finding in caught.value.findings]


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_a_value_is_what_its_key_expects(quote: str) -> None:
    text = f"          port: {quote}${{PORT}}{quote}\n          baud: {quote}${{BAUD}}{quote}\n"
    assert uart(text, PORT="/dev/ttyS1", BAUD="9600") == Uart(port="/dev/ttyS1", baud=9600)


def test_several_in_one_value_and_one_inside_braces() -> None:
    text = "          {port: '/dev/${KIND}${NUMBER:-0}', baud: '${BAUD:-115200}'}\n"
    assert uart(text, KIND="ttyUSB") == Uart(port="/dev/ttyUSB0", baud=115200)


def test_digits_in_quotes_are_text_where_text_is_expected() -> None:
    assert loads(HEAD.replace("name: t", 'name: "${N}"'), variables={"N": "42"}).name == "42"


def test_an_empty_variable_has_its_default_and_a_set_one_wins() -> None:
    text = "          port: ${PORT:-/dev/ttyS9}\n"
    assert uart(text, PORT="").port == uart(text).port == "/dev/ttyS9"
    assert uart(text, PORT="/dev/a").port == "/dev/a"


def test_a_dollar_is_escaped_and_alone_means_nothing() -> None:
    assert uart("          port: /dev/$${A}$B$$\n", A="1", B="2").port == "/dev/${A}$B$$"


def test_a_missing_variable_is_one_error_at_its_place() -> None:
    text = LINE + "          port: /dev/${KIND}\n          baud: '${BAUD}'\n"
    assert faults(text) == [
        "t.yaml:10:22: error: the variable KIND is not set: set it, or write ${KIND:-DEFAULT}",
        "t.yaml:11:18: error: the variable BAUD is not set: set it, or write ${BAUD:-DEFAULT}",
    ]


def test_other_errors_are_reported_beside_it() -> None:
    found = faults(LINE + "          port: ${PORT}\n          bauds: 1\n")
    assert len(found) == 2
    assert 'unknown key "bauds"' in found[1]


@pytest.mark.parametrize("text", ["${", "${}", "${1A}", "${A-b}", "${A:-b", "${A b}"])
def test_what_is_no_variable_is_an_error_that_says_how_one_is_written(text: str) -> None:
    (found,) = faults(LINE + f"          port: '{text}'\n", A="x")
    assert found.startswith("t.yaml:10:18: error: a variable is written ${NAME}")


def test_a_wrong_value_is_an_error_where_the_variable_stands() -> None:
    (found,) = faults(LINE + "          port: /dev/a\n          baud: ${BAUD}\n", BAUD="fast")
    assert found.startswith("t.yaml:11:17: error: bridges.b.join[1].uart.baud: ")


def test_keys_hold_no_variables() -> None:
    assert 'unknown key "${K}"' in faults(HEAD + "${K}: 1\n", K="brokers")[0]


def test_a_line_break_in_a_variable_is_an_error() -> None:
    assert "line break" in faults(LINE + "          port: ${PORT}\n", PORT="/dev/a\nb")[0]


def test_an_alias_stands_for_the_replaced_value() -> None:
    topology = loads(
        "name: &n '${N}'\ngateways: {gw: {address: *n}}\nbuses: {p: {on: gw}}\n", variables={"N": "h"}
    )
    assert (topology.name, topology.gateways["gw"].address) == ("h", "h")


def test_variables_are_bounded_together() -> None:
    names = ", ".join(["'${N}'"] * 3)
    found = faults(HEAD + f"names: [{names}]\n", N="n" * (CHARACTERS_MAX // 2))
    assert "more than 1048576 characters" in found[0]


def test_check_notes_what_variables_stand_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(LINE + "          port: ${PORT_OF_TEST}\n          baud: ${BAUD_OF_TEST:-9600}\n")
    monkeypatch.setenv("PORT_OF_TEST", "/dev/ttyS3")
    assert main(["check", str(file)]) == 0
    shown = capsys.readouterr().out
    assert f'{file}:10:17: note: the variable PORT_OF_TEST is "/dev/ttyS3"' in shown
    assert f'{file}:11:17: note: the variable BAUD_OF_TEST is not set; its default is "9600"' in shown


def test_a_machine_is_the_gateway_of_its_name_or_the_only_one() -> None:
    two = loads("name: t\ngateways: {a: {address: h1}, b: {address: h2}}\nbuses: {p: {on: a}, q: {on: b}}\n")
    assert (gateway_here(two, "b"), gateway_here(two, "b.plant.example")) == ("b", "b")
    with pytest.raises(TopologyError, match="this host, c: choose one with --gateway: a, b"):
        gateway_here(two, "c")
    assert gateway_here(loads(HEAD), "c") == "gw"


def scalar(text: str) -> ScalarNode:
    node = yaml.compose(text)
    assert isinstance(node, ScalarNode)
    return node


@pytest.mark.parametrize(
    ("text", "kind", "plain"),
    [("${N}", "int", "int"), ("'${N}'", "str", "int"), ('"a${N}"', "str", "str"), ("a${N}", "str", "str")],
)
def test_a_value_without_quotes_is_read_again_and_one_in_quotes_is_text_that_may_be_so_read(
    text: str, kind: str, plain: str
) -> None:
    made, _ = expanded(scalar(text), {"N": "42"})
    assert isinstance(made, Expanded)
    assert (made.tag, made.plain_tag) == (f"tag:yaml.org,2002:{kind}", f"tag:yaml.org,2002:{plain}")


def test_a_value_without_variables_stays_as_it_is() -> None:
    node = scalar("$42")
    assert expanded(node, {}) == (node, [])


@pytest.mark.parametrize(
    ("text", "variables", "use"),
    [
        ("a ${N}", {"N": "v"}, Use(2, "N", "v", False)),
        ("a ${N:-d}", {"N": "v"}, Use(2, "N", "v", False)),
        ("a ${N:-d}", {"N": ""}, Use(2, "N", "d", True)),
        ("a ${N:-d}", {}, Use(2, "N", "d", True)),
        ("a ${N:-}", {}, Use(2, "N", "", True)),
        ("${N}", {"N": ""}, Use(0, "N", "", False)),
    ],
)
def test_a_use_tells_its_place_and_whether_its_default_stands_there(
    text: str, variables: dict[str, str], use: Use
) -> None:
    assert list(uses_in(text, variables)) == [use]
