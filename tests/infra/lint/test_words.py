"""Retired words, docstrings that are questions, and section banners are findings."""

from __future__ import annotations

import pytest

from infra.lint import words
from infra.lint.source import parse
from infra.lint.words import check, is_retired


def findings(text: str) -> list[str]:
    return [finding.partition(": ")[2] for finding in check(parse("shared/example.py", text))]


@pytest.mark.parametrize("name", ["found", "_told", "Kin", "kin_of", "whose_turn", "NobodyWaits"])
def test_a_retired_word_is_refused_as_a_name_and_as_a_part_of_one(name: str) -> None:
    assert is_retired(name)


@pytest.mark.parametrize("name", ["NotFound", "not_found", "founder", "skin", "wished_for_x"])
def test_other_words_are_allowed(name: str) -> None:
    assert not is_retired(name)


@pytest.mark.parametrize("name", ["each", "given", "made"])
def test_a_vague_word_is_refused_as_a_name_of_the_product_alone(name: str) -> None:
    text = f"{name} = 1\n{name}_jobs = 2"
    assert findings(text) == [f"identifier that names nothing: {name}"]
    assert not list(check(parse("tests/test_example.py", text)))


@pytest.mark.parametrize("name", ["may_beat", "_tell", "node_asks", "ask", "knows_time"])
def test_an_unclear_word_is_refused_as_a_part_of_a_name_of_the_product(name: str) -> None:
    text = f"{name} = 1\nheartbeat = 2"
    assert findings(text) == [f"retired word in the identifier: {name}"]
    assert not list(check(parse("tests/test_example.py", text)))


def test_a_word_may_be_retired_below_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(words.RETIRED_BELOW, "services/placement/", frozenset({"draft"}))
    refused = list(check(parse("services/placement/core/example.py", "self._draft = 1")))
    assert len(refused) == 1 and "retired word in the identifier: _draft" in refused[0]
    assert findings("draft = 1") == []


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "def told() -> None: ...",
        "class Wish: ...",
        "def f(said: int) -> None: ...",
        "import os as kin",
        "self.sights = 1",
        "for whose in (): ...",
        "match 1:\n    case nobody: ...",
    ],
)
def test_each_way_to_define_a_name_is_looked_at(text: str) -> None:
    assert len(findings(text)) == 1


def test_a_column_of_a_table_is_allowed_in_its_own_file() -> None:
    assert list(check(parse("shared/projections/audit.py", "whose: str"))) == []
    assert findings("whose: str") != []


def test_using_a_name_of_a_library_is_no_finding() -> None:
    assert findings("x = library.found") == []


def test_a_docstring_that_begins_with_a_question_is_a_finding() -> None:
    assert findings('"""Who waits."""') == ["docstring begins with a question: Who"]
    assert findings('"""Jobs that wait."""') == []


def test_a_docstring_that_names_errors_alone_is_a_finding() -> None:
    text = 'def f():\n    """Raises ValueError."""'
    assert findings(text) == ["docstring without what the function does"]
    assert findings('def f():\n    """Return it. Raises ValueError."""') == []


@pytest.mark.parametrize("opening", ["Whether", "How", "Which", "Why"])
@pytest.mark.parametrize("head", ["", "def f():\n    ", "async def f():\n    ", "class F:\n    "])
def test_a_docstring_of_a_body_states_what_it_has(opening: str, head: str) -> None:
    text = f'{head}"""{opening} jobs wait."""'
    assert findings(text) == [f"docstring begins with a question: {opening}"]
    assert findings(f'{head}"""Return whether jobs wait."""') == []


def test_a_docstring_of_a_field_may_answer_a_question() -> None:
    assert findings('class Job:\n    hold: str\n    """Why it waits."""') == []


@pytest.mark.parametrize("before", ["import os", "def f(): ...", '"""Example."""', "f()"])
def test_a_text_that_describes_no_name_is_a_finding(before: str) -> None:
    text = f'{before}\n"""Most of them."""'
    assert findings(text) == ["text that describes no name before it"]
    assert findings('LIMIT = 1\n"""Most of them."""') == []


def test_a_section_banner_is_a_finding() -> None:
    assert findings("# ---- jobs ----") == ["section banner; a file that needs one is two files"]
    assert findings("# A comment - with a dash.") == []


@pytest.mark.parametrize(
    "word", ["nobody", "tells", "telling", "asks", "asked", "wants", "wanted", "wished"]
)
def test_an_unclear_word_is_a_finding_in_comments_and_messages_of_the_product(word: str) -> None:
    text = f"# a node {word} it\nraise ValueError(f'{{x}}: {word} it')"
    assert findings(text) == [f"retired word in a {place}: {word}" for place in ("text", "comment")]
    assert not list(check(parse("tests/test_example.py", text)))


def test_a_docstring_names_what_it_means() -> None:
    assert findings('"""Nothing that nobody reads."""') == ["retired word in a text: nobody"]
    assert findings('"""Untold jobs."""') == []
