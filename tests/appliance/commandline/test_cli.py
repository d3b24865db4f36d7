import pytest

from appliance.commandline import cli


def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="rich.console")

    monkeypatch.setattr(cli, "import_module", refuse)
    assert cli.main(["demo"]) == 1
    assert "pip install 'buscoupler[demo]'" in capsys.readouterr().err


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cli.commands():
        with pytest.raises(SystemExit) as stop:
            cli.main([name, "--help"])
        assert stop.value.code == 0
        assert name in capsys.readouterr().out


def test_a_command_at_the_front_is_the_only_one_that_gets_a_parser() -> None:
    assert cli.parser("run", alone=True).below().keys() == {"run"}
    for selected in (None, "nothing"):
        assert cli.parser(selected, alone=True).below().keys() == cli.commands().keys()


def test_options_in_front_of_a_command_know_all_others(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help", "run"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in cli.commands("run"))
