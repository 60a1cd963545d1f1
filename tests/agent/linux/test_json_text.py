"""The JSON of a step is that of the standard library."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent.linux import json_text

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(SCALARS, lambda v: st.lists(v) | st.dictionaries(st.text(), v))


@given(VALUES)
def test_texts_and_values_are_those_of_the_standard_library(value: object) -> None:
    text = json.dumps(value)
    assert json_text.encode(value) == text
    assert json_text.decode(f" {text}\n") == value


@given(st.text(alphabet='{}[]":,. tfn0123e-\\u'))
def test_a_text_is_refused_exactly_where_the_standard_library_refuses_it(text: str) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match="."):
            json_text.decode(text)
    else:
        assert json_text.decode(text) == value


def test_what_json_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="set is no value of JSON"):
        json_text.encode({"a": {1}})
