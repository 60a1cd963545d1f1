"""The paths that documents name exist in the repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from berth_agent import file_names

ROOT = Path(__file__).parents[2]
TRACKED = subprocess.run(
    ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
).stdout.splitlines()
TOP = {path.split("/")[0] for path in TRACKED if "/" in path}
SUFFIXES = (".py", ".md", ".yml", ".yaml", ".json", ".toml", ".lock")
MADE = {"stack.json", "manifest.json", "simulation.json", "build/sbom.cdx.json"} | {
    name for name in vars(file_names).values() if isinstance(name, str)
}
"""Files that Berth writes at run time."""
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.{},-]+(?:/[\w.{},-]+)*/?")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?(?: '[^']*')?\)")


def documents() -> list[str]:
    tops = [path for path in TRACKED if re.fullmatch(r"[A-Z]+\.md", path)]
    docs = [path for path in TRACKED if path.startswith("docs/") and path.endswith(".md")]
    readmes = [path for path in TRACKED if re.search(r"/(README|RULES)\.md$", path)]
    return sorted({*tops, *docs, *readmes})


def is_path(text: str) -> bool:
    """Return whether the text names a file or a folder of the repository."""
    if not PATH.fullmatch(text) or text in MADE or text.startswith("."):
        return False
    return text.endswith(SUFFIXES) or ("/" in text and text.split("/")[0] in TOP)


def expand(path: str) -> list[str]:
    """Expand `{a,b}` and `{1,2}` as a shell does."""
    braces = re.search(r"\{([^}]*)\}", path)
    if braces is None:
        return [path]
    heads, tails = path[: braces.start()], path[braces.end() :]
    return [item for part in braces[1].split(",") for item in expand(heads + part + tails)]


def exists(path: str, document: str) -> bool:
    """A path is meant from the root or is the end of a path; a README's own folder goes first."""
    path = path.rstrip("/")
    if (ROOT / path).exists():
        return True
    folder = "" if document.startswith("docs/") else document.rpartition("/")[0]
    if re.fullmatch(r"docs/decisions/\d{4}", path):
        return any(name.startswith(f"{path}-") for name in TRACKED)
    below = [name for name in TRACKED if name.startswith(folder)]
    return any(f"/{name}/".find(f"/{path}/") >= 0 for name in below)


def test_paths_in_documents_exist() -> None:
    for document in documents():
        text = FENCE.sub("", (ROOT / document).read_text())
        paths = [path for code in CODE.findall(text) if is_path(code) for path in expand(code)]
        assert [path for path in paths if not exists(path, document)] == [], document


def test_links_of_documents_lead_to_files() -> None:
    for document in documents():
        text = FENCE.sub("", (ROOT / document).read_text())
        folder = (ROOT / document).parent
        assert [link for link in LINK.findall(text) if not (folder / link).exists()] == [], document


def test_a_renamed_file_is_noticed() -> None:
    assert is_path("shared/bus/lane/lane.py")
    assert exists("shared/bus/lane/lane.py", "README.md")
    assert not exists("shared/bus/lanes_of_old.py", "README.md")
    assert not exists("lane.py", "services/failslow/README.md")
    assert exists("docs/decisions/0001", "README.md")
    assert not exists("docs/decisions/9999", "README.md")
    assert not is_path("job.submit.v1")
    assert not is_path("/v1/jobs")
