"""Options of `berth bench year`."""

from __future__ import annotations

from dataclasses import dataclass

YEAR_DAYS = 365.0


@dataclass(frozen=True, slots=True)
class YearOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    days: float = 3.0
    jobs_per_day: int = 10_000
    endpoints: int = 5
    llm_per_s: float = 1.0
    llm_hours: float = 24.0
    rankings_jobs: int = 2_000
    array_jobs: int = 1_000
    array_kib: int = 56
    ended_jobs: int = 0
    """Ended jobs with which admission is measured once more; 0: those of the rest of a year."""
    skip_postgres: bool = False
    skip_kafka: bool = False
    out: str = ""


def check_options(options: YearOptions) -> None:
    """Raise ValueError for an option out of its range, with name, value and rule."""
    for name, least in (("days", 0.001), ("endpoints", 0), ("llm_hours", 0.001), ("llm_per_s", 0)):
        value = getattr(options, name)
        if not least <= value <= YEAR_DAYS * 24:
            raise ValueError(f"{name}: {value:g}; {least:g} to {YEAR_DAYS * 24:g} are allowed")
