from __future__ import annotations

from pathlib import Path

import pytest

from simulator.rounds.applications import Application


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return measurements of a small training: four placements, one size beyond, two batches."""
    own = tmp_path / "ncf"
    own.mkdir()
    steps = [("1", 1.0), ("2", 1.2), ("11", 1.6), ("22", 2.0)]
    lines = [
        f"{placement},{size},{seconds * size / 8},{0.1 * seconds}"
        for placement, seconds in steps
        for size in (8, 16)
    ]
    head = "placement,local_bsz,step_time,sync_time\n"
    (own / "placements.csv").write_text(head + "\n".join(lines) + "\n")
    head = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
    (own / "scalability.csv").write_text(head + "4,4,8,3.0,1.0\n4,8,8,4.0,1.0\n")
    for batch, factor in ((16, 1.0), (64, 0.5)):
        rows = "".join(
            f"{100.0 * epoch + batch},{100 * factor * epoch},0.5,{epoch},{2 * epoch * factor}\n"
            for epoch in range(1, 11)
        )
        head = "progress,iteration,metric,grad_sqr,grad_var\n"
        (own / f"validation-{batch}.csv").write_text(head + rows)
    return own


def test_measured_placements_are_interpolated_by_examples(folder: Path) -> None:
    app = Application(folder)
    assert app.steps((2,), 12).step_s == pytest.approx(1.2 * 1.5)
    assert app.steps((1, 1), 8) == pytest.approx((1.6, 0.16))


def test_other_placements_are_between_near_ones(folder: Path) -> None:
    app = Application(folder)
    # Three nodes with one GPU each: between two nodes, 1.6 s, and four, 3 s.
    assert app.steps((1, 1, 1), 8).step_s == pytest.approx(2.3)
    # Two nodes with three GPUs: between two and four GPUs.
    assert app.steps((2, 1), 8).step_s == pytest.approx(1.8)
    assert app.steps((1, 2), 8) == app.steps((2, 1), 8)


def test_progress_and_noise_are_between_batch_sizes(folder: Path) -> None:
    app = Application(folder)
    assert app.limits == (type(app.limits))(16, 64, 8, 16)
    assert [app.progress_after(epochs) for epochs in (0, 1)] == [0.0, 116.0]
    assert app.noise(16, 0) == (1.0, 2.0)
    assert app.noise(40, 0) == pytest.approx((1.0, 1.5))
    assert app.iterations_after(40, 9) == pytest.approx(750.0)
