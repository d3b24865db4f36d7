"""Hooks of mkdocs (mkdocs.yml): what the site has beside the text of the pages.

The navigation is that of docs/index.md. Files outside of docs/ to which pages link are in the site below
`files/`. The pages are written for GitHub's Markdown, which differs from that of mkdocs in three points.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)((?:#[^)\s]*)?)\)")
HEADING = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)
TERMINAL = re.compile(r"^(\*\w+ terminal\*)\n```", re.MULTILINE)
REASON = re.compile(r"^ *<!-- not run: .* -->\n", re.MULTILINE)  # of tests
BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
BEGINS = re.compile(r"(?<=\S)\n(?=(?:[-*] |\d+\. |\|))")
ITEM = re.compile(r"^\s*(?:[-*] |\d+\. |\||  )")


def on_config(config: Any) -> Any:
    """Take the navigation from the index: a group for each of its bold lines."""
    _, *parts = HEADING.split((ROOT / "docs/index.md").read_text())
    groups = [{name: _pages(text)} for name, text in zip(parts[::2], parts[1::2], strict=True)]
    config.nav = [{"Documentation": "index.md"}, *groups]
    return config


def _pages(text: str) -> list[dict[str, str]]:
    return [{name: site_path(_target("docs/index.md", target))} for name, target, _ in LINK.findall(text)]


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside of docs/ to which pages link, and those to which these link."""
    todo = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(todo)
    while todo:
        for path in outside(todo.pop()):
            if path not in seen:
                seen.add(path)
                todo.append(path)
                files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Write a page for mkdocs: its links, terminals of its blocks, blank lines before lists and tables."""
    path = page.file.src_uri
    source = path.removeprefix("files/") if path.startswith("files/") else f"docs/{path}"
    parts = BLOCK.split(TERMINAL.sub(r"\n\1\n\n```", REASON.sub("", markdown)))
    return "".join(part if part.startswith("```") else _prose(part, source) for part in parts)


def _prose(text: str, source: str) -> str:
    def spaced(found: re.Match[str]) -> str:
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        return "\n" if ITEM.match(line) else "\n\n"

    return LINK.sub(lambda found: _link(found, source), BEGINS.sub(spaced, text))


def _link(found: re.Match[str], source: str) -> str:
    words, target, anchor = found.groups()
    if "://" in target:
        return found[0]
    path = _target(source, target)
    if (ROOT / path).is_dir():
        return words
    here = posixpath.dirname(site_path(source)) or "."
    return f"[{words}]({posixpath.relpath(site_path(path), here)}{anchor})"


def outside(source: str) -> Iterator[str]:
    """Return the files outside of docs/ to which a page links, as paths in the repository."""
    if not source.endswith(".md"):
        return
    for _, target, _ in LINK.findall(BLOCK.sub("", (ROOT / source).read_text())):
        path = _target(source, target)
        if "://" not in target and not path.startswith("docs/") and (ROOT / path).is_file():
            yield path


def site_path(path: str) -> str:
    """Return where a file of the repository is in the site."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}"


def _target(source: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
