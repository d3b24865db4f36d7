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
