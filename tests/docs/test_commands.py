"""Every command that a page shows exists, with its options and arguments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from cli.main import app
from shared.contracts.pools import BasePolicy

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (
    README,
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("operations/*.md")),
)
FENCE = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBERS = {12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen"}


def commands_of(page: Path, program: str) -> Iterator[list[str]]:
    """Yield the arguments of each command of the program in the page's blocks."""
    for block in FENCE.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            for words in simple_commands(line.removeprefix("$ ")):
                while words and re.fullmatch(r"[A-Z_]+=.*|sudo", words[0]):
                    del words[0]
                if words[:1] == [program]:
                    yield words[1:]


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line of shell; a line with an open quote has none."""
    tokens = shlex.shlex(line, posix=True, punctuation_chars=True)
    tokens.whitespace_split = True
    try:
        words = list(tokens)
    except ValueError:
        return
    for is_operator, group in groupby(words, lambda word: set(word) <= set("();<>|&")):
        if not is_operator:
            yield list(group)


BERTH = [
    pytest.param(words, id=f"{page.stem}: {shlex.join(words)}"[:90])
    for page in PAGES
    for words in commands_of(page, "berth")
]


def parse(words: list[str]) -> None:
    """Parse arguments of `berth` without running their verb; raises for what it does not have."""
    command = _whole_command()
    context = command.make_context("berth", list(words))
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    if words[0] == "bench":
        import_module(f"benchmarks.{words[1]}")


@cache
def _whole_command() -> Any:
    return typer.main.get_command(app)


@pytest.mark.parametrize("words", BERTH)
def test_a_command_of_a_page_can_be_parsed(words: list[str]) -> None:
    parse(words)


@pytest.mark.parametrize(
    "words", [["whyy", "j"], ["why", "--nope", "j"], ["why"], ["bench", "nope"]]
)
def test_a_command_that_does_not_exist_cannot(words: list[str]) -> None:
    with pytest.raises(Exception, match="No such|Missing|No module"):
        parse(words)


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = {word for page in PAGES for words in commands_of(page, "make") for word in words}
    named = {name for page in PAGES for name in re.findall(r"`make ([\w-]+)", page.read_text())}
    targets_shown = {word for word in shown if "=" not in word}
    assert "demo" in targets_shown and targets_shown | named <= targets


def test_the_readme_counts_the_policies() -> None:
    assert f"{NUMBERS[len(get_args(BasePolicy))]} classic policies" in " ".join(
        README.read_text().split()
    )
