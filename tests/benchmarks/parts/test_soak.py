"""Growth is told by process and only of the time after caches have filled."""

import pytest

from benchmarks.parts.soak import Soak, complaints, is_bad


def test_growth_is_that_of_the_second_half():
    samples = Soak()
    for minute in range(61):
        filling = min(minute, 20)
        samples.add(minute * 60.0, {"leaks": 50 + 2 * minute, "fills": 50 + filling, "still": 9.0})
    growth = samples.growth_mib_per_h()
    assert growth["leaks"] == pytest.approx(120)
    assert growth["fills"] == pytest.approx(0)
    assert growth["still"] == pytest.approx(0)


def test_a_process_that_is_away_has_what_it_had():
    samples = Soak()
    for at_s, found in ((0.0, {"a": 1.0}), (10.0, {"b": 3.0}), (20.0, {"a": 2.0, "b": 3.0})):
        samples.add(at_s, found)
    assert samples.mib == {"a": [1.0, 1.0, 2.0], "b": [3.0, 3.0, 3.0]}


def test_one_sample_says_nothing_of_growth():
    samples = Soak()
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
def test_what_counts_as_a_complaint(line: str, bad: bool):
    assert is_bad(line) is bad


def test_only_services_complain(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("broker.log", "postgres.log", "placement.log", "placement.log.1"):
        (logs / name).write_text('{"level": "error"}\n')
    assert [each.split(":")[0] for each in complaints(tmp_path)] == [
        "placement.log",
        "placement.log.1",
    ]
