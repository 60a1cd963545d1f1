"""Times and sizes with units, as other schedulers take them."""

from __future__ import annotations

import pytest

from cli.errors import BadInput
from cli.input.quantities import parse_memory_gib, parse_walltime_s


@pytest.mark.parametrize(
    ("text", "span_s"),
    [("5400", 5400), (28800.0, 28800), ("0.5", 0.5), ("90s", 90), ("1.5h", 5400), ("2d", 172_800)],
)
def test_a_walltime_is_seconds_or_has_a_unit(text: object, span_s: float) -> None:
    assert parse_walltime_s(text) == span_s


@pytest.mark.parametrize("text", ["", "0", "-1", "1w", "1:30:00", "1h30m", "nan", "٣"])
def test_another_walltime_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(BadInput, match="--walltime: .*; seconds, or a number with s, m, h or d"):
        parse_walltime_s(text)


@pytest.mark.parametrize(
    ("text", "size_gib"),
    [("16", 16), ("0.5", 0.5), ("512M", 0.5), ("16G", 16), ("16Gi", 16), ("2TiB", 2048), ("0", 0)],
)
def test_memory_is_gib_or_has_a_unit(text: str, size_gib: float) -> None:
    assert parse_memory_gib(text) == size_gib


@pytest.mark.parametrize("text", ["", "-1", "16K", "16 G", "16gb", "inf"])
def test_another_size_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(BadInput, match="--mem: .*; GiB, or a number with M, G or T"):
        parse_memory_gib(text)
