"""The model of capacity, on figures with a known answer."""

from __future__ import annotations

from benchmarks.scale import fit_model, needs_of, render_page

ONE_COPY: list[dict[str, object]] = [
    {
        "lanes": lanes,
        "copies": 1,
        "idle_cores": 0.2 + 0.05 * lanes,
        "memory_mib": 800 + 10 * lanes,
        "cpu_s_per_1000_jobs": 5.0 + lanes / 10,
    }
    for lanes in (1, 2, 4)
]
OVERLOADED: dict[str, object] = {**dict.fromkeys(ONE_COPY[0], 9999.0), "copies": 2}
ROWS = [*ONE_COPY, OVERLOADED]


def test_lines_through_the_shapes_with_one_copy() -> None:
    assert fit_model(ROWS) == {
        "cores_fixed": 0.2,
        "cores_per_lane": 0.05,
        "memory_mib_fixed": 800.0,
        "memory_mib_per_lane": 10.0,
        "cpu_s_per_job": 0.0051,
    }


def test_what_an_installation_needs_of() -> None:
    needs = needs_of(fit_model(ROWS), 100, 100.0)
    assert needs == {"pools": 100, "jobs_per_s": 100.0, "cores": 5.7, "memory_gib": 1.8}


def test_the_page_has_both_tables() -> None:
    needs = [needs_of(fit_model(ROWS), 10, 50.0)]
    text = render_page({"cores": 2, "broker": "kafka"}, ROWS, needs)
    assert text.count("\n|---") == 2 and "cores_per_lane 0.05" in text
