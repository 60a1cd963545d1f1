"""Growth is measured by process, over the time after caches have filled."""

from pathlib import Path

import pytest

from benchmarks.parts.chaos.soak import MemorySamples, error_lines, growth_figures, is_error


def test_growth_is_that_of_the_second_half() -> None:
    samples = MemorySamples()
    for minute in range(61):
        filling = min(minute, 20)
        samples.add(minute * 60.0, {"leaks": 50 + 2 * minute, "fills": 50 + filling, "still": 9.0})
    growth = samples.growth_mib_per_h()
    assert growth["leaks"] == pytest.approx(120)
    assert growth["fills"] == pytest.approx(0)
    assert growth["still"] == pytest.approx(0)


def test_a_missing_process_keeps_its_last_value() -> None:
    samples = MemorySamples()
    for at_s, memory_mib in ((0.0, {"a": 1.0}), (10.0, {"b": 3.0}), (20.0, {"a": 2.0, "b": 3.0})):
        samples.add(at_s, memory_mib)
    assert samples.mib == {"a": [1.0, 1.0, 2.0], "b": [3.0, 3.0, 3.0]}


def test_one_sample_has_no_growth() -> None:
    samples = MemorySamples()
    samples.add(0.0, {"a": 1.0})
    assert samples.growth_mib_per_h() == {}


@pytest.mark.parametrize(
    ("line", "bad"),
    [
        ('{"level": "info", "message": "lane gained"}', False),
        ('{"level": "warning", "message": "the broker is away"}', False),
        ('{"level": "error", "message": "x"}', True),
        ('{"level": "critical", "message": "x"}', True),
        ("Traceback (most recent call last):", True),
        ("[]", True),
        ("", False),
    ],
)
def test_error_levels_and_lines_that_are_no_log_records_are_errors(line: str, bad: bool) -> None:
    assert is_error(line) is bad


def test_only_logs_of_services_are_read(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("broker.log", "postgres.log", "placement.log", "placement.log.1"):
        (logs / name).write_text('{"level": "error"}\n')
    assert [line.split(":")[0] for line in error_lines(tmp_path)] == [
        "placement.log",
        "placement.log.1",
    ]


def test_the_worst_growth_is_that_of_a_service() -> None:
    samples = MemorySamples()
    for minute in range(61):
        samples.add(minute * 60.0, {"broker": 5.0 * minute, "a": 1.0 * minute, "b": 9.0})
    figures = growth_figures(samples)
    assert (figures["worst_service"], figures["worst_growth_mib_per_h"]) == ("a", 60.0)
    assert figures["minutes"] == 60.0
    assert figures["mib_at_last"] == {"broker": 300.0, "a": 60.0, "b": 9.0}
