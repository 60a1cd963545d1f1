"""The page on schedulers has the schedulers that exist, and its example runs as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.schedulers.registry import scheduler_classes
from tests.pages import blocks

PAGE = (Path(__file__).parents[2] / "docs" / "schedulers.md").read_text()


def test_the_table_has_every_scheduler_as_it_describes_itself() -> None:
    head = "| scheduler | published in | needs | decides |\n|---|---|---|---|\n"
    rows = PAGE.partition(head)[2].partition("\n\n")[0].splitlines()
    described = [
        f"| `{name}` | {own.source} | {', '.join(own.needs) or '-'} | {', '.join(own.decides)} |"
        for name, own in scheduler_classes().items()
    ]
    assert rows == described


def test_the_example_is_short_and_prints_what_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    examples = blocks(PAGE, "python")
    assert len(examples[0].splitlines()) <= 31
    exec("\n".join(examples), {"__name__": "example"})  # noqa: S102
    stated = re.search(r"It prints ([\d.]+) and ([\d.]+) seconds\.", PAGE)
    assert stated is not None
    assert capsys.readouterr().out.split() == list(stated.groups())
