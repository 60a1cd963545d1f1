"""A position in all lanes survives its text form; any other text is no position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.core.vector import MAX_OFFSET, decode_vector, encode_vector


def test_a_vector_survives_its_text_form() -> None:
    offsets = [0, 7, MAX_OFFSET - 1]
    assert decode_vector(encode_vector(offsets), 3) == offsets


@pytest.mark.parametrize(
    "text", ["", "1", "1.2.3", "1.-2", "1.x", "1.²", f"1.{MAX_OFFSET}", "1." * 20_000]
)
def test_other_text_is_no_position(text: str) -> None:
    assert decode_vector(text, 2) is None


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=16))
def test_any_vector_survives_its_text_form(offsets: list[int]) -> None:
    assert decode_vector(encode_vector(offsets), len(offsets)) == offsets


@given(st.text(max_size=30))
def test_any_text_is_a_position_or_none(text: str) -> None:
    offsets = decode_vector(text, 2)
    assert offsets is None or len(offsets) == 2
