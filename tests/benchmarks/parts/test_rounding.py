from __future__ import annotations

from dataclasses import dataclass

from benchmarks.parts.rounding import rounded


@dataclass(frozen=True)
class Figures:
    trace: str
    stops: int
    ended: bool
    wait_s: float
    gain: float | None


def test_floats_alone_are_rounded() -> None:
    figures = Figures("pai", 12345, True, 1.23456, None)
    assert rounded(figures, 2) == {
        "trace": "pai",
        "stops": 12345,
        "ended": True,
        "wait_s": 1.23,
        "gain": None,
    }
