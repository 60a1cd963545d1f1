"""A top-level name that the product does not use is a finding, whoever tests it."""

from __future__ import annotations

import pytest

from infra.lint.source import parse
from infra.lint.unused import KEPT, check

PATH = "services/review/core/rules.py"


@pytest.mark.parametrize(
    "text", ["LIMIT = 3", "LIMIT: int = 3", "def LIMIT(): ...", "class LIMIT: ..."]
)
def test_a_name_without_a_use_is_a_finding(text: str) -> None:
    finding = f"{PATH}:1: nothing of the product uses LIMIT; remove it"
    assert list(check([parse(PATH, text)])) == [finding]
    assert list(check([parse(PATH, f"{text}\nprint(LIMIT)")])) == []


@pytest.mark.parametrize(
    "text",
    [
        "from services.review.core.rules import LIMIT",
        "from services.review.core.rules import LIMIT as most",
        "from services.review.core import rules\nrules.LIMIT",
        "from services.review.core import rules as limits\nlimits.LIMIT",
        "import services.review.core.rules\nservices.review.core.rules.LIMIT",
    ],
)
def test_a_use_in_another_module_counts(text: str) -> None:
    user = parse("services/review/app.py", text)
    assert list(check([parse(PATH, "LIMIT = 3"), user])) == []


def test_the_same_name_of_another_module_is_no_use() -> None:
    other = parse("services/review/app.py", "LIMIT = 4\nprint(LIMIT)\nother.LIMIT")
    assert len(list(check([parse(PATH, "LIMIT = 3"), other]))) == 1


@pytest.mark.parametrize("decorator", ["dataclass", "dataclass(slots=True)"])
def test_a_dataclass_without_a_use_is_a_finding(decorator: str) -> None:
    text = f"@{decorator}\nclass Limits: ..."
    finding = f"{PATH}:2: nothing of the product uses Limits; remove it"
    assert list(check([parse(PATH, text)])) == [finding]


def test_what_a_decorator_takes_is_used() -> None:
    assert list(check([parse(PATH, "@route\ndef show(): ...")])) == []


def test_a_name_that_is_kept_has_no_use() -> None:
    path, name = next(iter(KEPT))
    assert list(check([parse(path, f"def {name}(): ...")])) == []
    finding = f"{path}:1: {name} is used; remove it from KEPT"
    assert list(check([parse(path, f"def {name}(): ...\n{name}()")])) == [finding]
