"""The page of the pipeline's cost: what people add to it survives a new run."""

from pathlib import Path

from benchmarks.pipeline import PAGE, remarks


def test_remarks_on_the_page_are_kept(tmp_path: Path) -> None:
    assert "The aims were: at 20 M rows" in remarks(PAGE)
    assert PAGE.read_text().endswith(remarks(PAGE))
    again = tmp_path / "page.md"
    again.write_text(f"# Other figures\n{remarks(PAGE)}")
    assert remarks(again) == remarks(PAGE)
    assert remarks(tmp_path / "none.md") == ""
