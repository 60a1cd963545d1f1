"""Quantities have the suffixes of Kubernetes."""

from __future__ import annotations

import pytest

from services.executor.core.kubernetes.quantities import parse_gib, parse_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", 0.5), ("64", 64), ("1e3", 1000), ("2k", 2000), ("1.5Ki", 1536), ("", 0), ("x", 0)],
)
def test_a_quantity_is_a_number(text: str, number: float) -> None:
    assert parse_quantity(text) == number
    assert parse_quantity(None) == 0


def test_memory_is_in_gib() -> None:
    assert parse_gib("512Mi") == 0.5
    assert parse_gib("16Gi") == 16
