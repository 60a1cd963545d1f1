"""Large JSON is cut into fields as a decoder would, and its searches end whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from services.throttle.relay import large_json
from services.throttle.relay.large_json import (
    LARGE_BYTES,
    MOST_DEPTH,
    MOST_MARKS,
    SLICE_BYTES,
    BadJson,
    LargeJson,
    count,
    find,
    value_bytes,
)

# A character is six bytes where it is escaped: 100 of them stay below the longest name.
NAMES = st.text(max_size=100)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.fixture(params=[8, 9, SLICE_BYTES])
def slices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(large_json, "SLICE_BYTES", request.param)
    size: int = request.param
    return size


def cut(data: bytes, most: int = 1000) -> dict[str, bytes]:
    return {name: bytes(raw) for name, raw in LargeJson(data).fields(most).items()}


@settings(max_examples=50, deadline=None)
@given(document=st.dictionaries(NAMES, VALUES), indent=st.sampled_from([None, 1]))
def test_fields_are_those_of_a_decoder(document: dict[str, Any], indent: int | None) -> None:
    data = json.dumps(document, indent=indent).encode()
    assert {name: json.loads(raw) for name, raw in cut(data).items()} == document


def test_slices_cut_nothing_apart(slices: int) -> None:
    document = {'a"b\\': ["]}", {"x": '\\"["'}, "\\\\"], "n": -1.5e3, "": "\u00e9" * 9, "o": {}}
    data = json.dumps(document, indent=3, ensure_ascii=slices == 8).encode()
    assert {name: json.loads(raw) for name, raw in cut(data).items()} == document


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"a"',
        b'{"a":',
        b'{"a":}',
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1}}',
        b'{"a":[1}',
        b'{"a":"x',
        b'{"a":"x\\',
        b"{a:1}",
        b'{"a" 1}',
        b'{"\xff":1}',
        b'{"a":1}x',
    ],
)
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(BadJson, match="not valid JSON"):
        if data != b'{"a":[1}':
            cut(data)
        else:
            LargeJson(data + b" ").fields(1)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{" + b'"a":1,' * 20 + b'"a":1}', "object of more than 10 fields"),
        (b'{"a":' + b"[" * (MOST_DEPTH + 1) + b"}", f"at most {MOST_DEPTH} levels"),
        (b'{"a":[' + b"[]," * MOST_MARKS + b"1]}", f"more than {MOST_MARKS} strings"),
        (b'{"' + b"a" * 2000 + b'":1}', "a name of more than 1024 bytes"),
    ],
)
def test_effort_is_bounded(data: bytes, text: str) -> None:
    with pytest.raises(BadJson, match=text):
        cut(data, 10)


def test_elements_are_found_in_order(slices: int) -> None:
    data = b' [ "a,b" , [1, 2],{"x":"]"}, 3 ]'
    elements = [data[start:end] for start, end in LargeJson(data).elements()]
    assert elements == [b'"a,b"', b"[1, 2]", b'{"x":"]"}', b"3"]
    assert list(LargeJson(b"[]").elements()) == []
    with pytest.raises(BadJson):
        list(LargeJson(b'["a"').elements())


def test_searches_meet_what_lies_across_slices(slices: int) -> None:
    data = b"abcabcabc"
    assert [count(data, part) for part in (b"a", b"abc", b"ca", b"x")] == [3, 3, 2, 0]
    assert [find(data, b"abc", start) for start in (0, 1, 4, 7)] == [0, 3, 6, -1]


@pytest.mark.parametrize("size", [0, 1, LARGE_BYTES, LARGE_BYTES + 1, 3 * SLICE_BYTES + 7])
def test_a_value_is_copied_whole_whatever_its_size(size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    assert value_bytes(Raw(memoryview(data))) == data
