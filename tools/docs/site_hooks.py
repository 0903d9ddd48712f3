"""Hooks of MkDocs for the docs site: pages from outside of docs/, links to source files, scripts of npm.

mkdocs.yml names this file. MkDocs runs it in .venv-docs, where no package of this project is installed.
"""

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File  # type: ignore[import-not-found]

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = {
    "javascripts/mermaid.min.js": "mermaid/dist/mermaid.min.js",
    "javascripts/iframe-worker.js": "iframe-worker/shim/index.js",
}
"""Scripts of the site, and their files in .cache/site, which tools/site.sh downloads."""
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def outside_pages() -> dict[str, str]:
    """Map the path of each page outside docs/ in the repository to its path in the site."""
    pages = {
        "README.md": "index.md",
        "CONTRIBUTING.md": "contributing.md",
        "assets/bootstrap/README.md": "nodes/bootstrap.md",
        "assets/bootstrap/health/README.md": "nodes/health.md",
    }
    for readme in sorted((ROOT / "assets" / "training").glob("*/README.md")):
        pages[str(readme.relative_to(ROOT))] = f"workloads/{readme.parent.name}.md"
    return pages


def list_decisions() -> str:
    """Return a page that links every architecture decision record."""
    titles = {
        path.name: path.read_text().split("\n", 1)[0].lstrip("# ")
        for path in sorted((ROOT / "docs" / "adr").glob("0*.md"))
    }
    lines = [f"- [{title}](adr/{name})" for name, title in titles.items()]
    about = "Each record states a decision, the rejected options and the cost. A missing number is out "
    about += "of date, or stated by a [page on a mechanism](how-it-works.md#mechanisms)."
    return "\n".join(["# Decisions", "", about, "", *lines, ""])


def on_config(config: Any) -> Any:
    """Add the pages of workloads that nav of mkdocs.yml does not name, such as new-workload's."""
    (listed,) = [section["Workloads"] for section in config["nav"] if "Workloads" in section]
    named = {page for each in listed for page in each.values()}
    pages = [page for page in outside_pages().values() if page.startswith("workloads/")]
    listed += [{posixpath.basename(page).removesuffix(".md"): page} for page in pages if page not in named]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the outside pages, the list of decisions and the scripts."""
    for source, page in outside_pages().items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, "decisions.md", content=list_decisions()))
    for script, source in SCRIPTS.items():
        files.append(File.generated(config, script, abs_src_path=str(ROOT / ".cache" / "site" / source)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Point links at the site's pages; a link to a source file becomes the file's path."""
    del config, files
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]  # its section has no other page, and code needs the column's width
    outside = outside_pages()
    sources = {site: source for source, site in outside.items()}
    source = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return _LINK.sub(lambda link: _rewrite(link, source, page.file.src_uri, outside), markdown)


def _rewrite(link: re.Match[str], source: str, page: str, outside: dict[str, str]) -> str:
    if re.match(r"[a-z]+:", link["target"]):
        return link[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["target"]))
    if target in outside:
        in_site = outside[target]
    elif target == "docs/adr":
        in_site = "decisions.md"
    elif target.startswith("docs/"):
        in_site = target.removeprefix("docs/")
    elif (ROOT / target).exists() and not link["image"]:
        return link["text"] if f"`{target}" in link["text"] else f"{link['text']} (`{target}`)"
    else:
        return link[0]
    relative = os.path.relpath(in_site, posixpath.dirname(page) or ".")
    return f"{link['image']}[{link['text']}]({relative}{link['anchor'] or ''})"
