"""A test names a module of the mirrored folder, and a pure module has a test."""

from __future__ import annotations

import pytest

from infra.lint.__main__ import ROOT
from infra.lint.mirror import EXEMPT, PURE_FOLDERS, PURE_MODULES, THEMES, check
from infra.lint.source import parse

FILES = frozenset(
    {
        "services/access/__main__.py",
        "services/access/app.py",
        "services/access/core/decide.py",
        "infra/prometheus/alerts.yml",
        "agent/berth_agent/reading.py",
    }
)
DECIDE = parse("services/access/core/decide.py", "def decide() -> None: ...")
TEST_OF_DECIDE = "tests/services/access/core/test_decide.py"


def misplaced(test: str) -> bool:
    return bool(list(check([], FILES | {test})))


@pytest.mark.parametrize(
    "test",
    [
        TEST_OF_DECIDE,
        "tests/services/access/core/test_decide_properties.py",
        "tests/services/access/test_service.py",
        "tests/infra/prometheus/test_alerts.py",
        "tests/agent/test_reading.py",
        "tests/test_imports.py",
        "tests/e2e/bad_input/test_anything.py",
        "tests/services/access/cases.py",
    ],
)
def test_a_test_of_a_file_or_of_a_theme_lies_where_it_belongs(test: str) -> None:
    assert not misplaced(test)


@pytest.mark.parametrize(
    "test",
    [
        "tests/services/access/core/test_app.py",
        "tests/services/access/core/test_decided.py",
        "tests/services/access/test_restart.py",
        "tests/infra/prometheus/test_service.py",
        "tests/e2extra/test_anything.py",
    ],
)
def test_a_test_of_no_file_is_a_finding(test: str) -> None:
    assert misplaced(test)


def test_a_pure_module_without_a_test_is_a_finding() -> None:
    assert list(check([DECIDE], FILES)) == [
        f"services/access/core/decide.py:1: pure module without {TEST_OF_DECIDE}"
    ]
    assert list(check([DECIDE], FILES | {TEST_OF_DECIDE})) == []


def test_a_second_file_of_tests_does_not_replace_the_first() -> None:
    properties = "tests/services/access/core/test_decide_properties.py"
    assert len(list(check([DECIDE], FILES | {properties}))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("services/access/app.py", "def run() -> None: ..."),
        ("services/access/core/names.py", "NAMES = ('a', 'b')"),
    ],
)
def test_shells_and_declarations_need_no_test_of_their_own(path: str, text: str) -> None:
    assert list(check([parse(path, text)], FILES)) == []


def test_an_exemption_ends_with_the_first_test() -> None:
    path = next(iter(EXEMPT))
    module = parse(path, "def handle() -> None: ...")
    assert list(check([module], FILES)) == []
    name = path.rpartition("/")[2]
    test = f"tests/services/gateway/routes/test_{name}"
    assert list(check([module], {path, test})) == [f"{path}:1: has a test; remove it from EXEMPT"]


def test_each_path_of_the_rule_exists() -> None:
    assert [theme for theme in (*THEMES, *PURE_FOLDERS) if not (ROOT / theme).is_dir()] == []
    assert [path for path in (*PURE_MODULES, *EXEMPT) if not (ROOT / path).is_file()] == []
