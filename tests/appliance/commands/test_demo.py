"""`buscoupler demo`: a directory that it made for captures, and that has none, is removed."""

from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.demo import play


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(
    ("files", "error", "is_kept"),
    [
        ([], None, False),
        (["plant.journal"], None, False),
        ([], OSError("x"), False),
        (["a/1.parquet"], None, True),
    ],
)
def test_only_a_directory_that_has_captures_is_left_behind(
    files: list[str],
    error: OSError | None,
    is_kept: bool,
    given: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / "captures"

    async def played(seconds: float, rate: float, capture: Path) -> int:
        assert capture == place
        for file in files:
            (capture / file).parent.mkdir(exist_ok=True)
            (capture / file).touch()
        if error is not None:
            raise error
        return 0

    def made() -> Path:
        place.mkdir()
        return place

    monkeypatch.setattr(play, "play", played)
    monkeypatch.setattr(play, "new_capture", made)
    if given:
        place.mkdir()
    main(["demo", *(["--capture", str(place)] if given else [])])
    assert place.exists() == (is_kept or given)
