from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.failslow.files import read_series

ROWS: dict[str, Any] = {
    "job": ["a"] * 4,
    "iteration": [0, 1, 2, 3],
    "seconds": [1.0, 1.1, 1.2, 1.3],
}


def written(folder: Path, **columns: Any) -> Path:
    path = folder / "suite.parquet"
    pq.write_table(pa.table({**ROWS, **columns}), path)
    return path


def test_required_columns_are_enough_and_the_job_is_healthy(tmp_path: Path) -> None:
    (job,) = read_series(written(tmp_path))
    assert job.job == "a"
    assert job.seconds.tolist() == ROWS["seconds"]
    assert job.tokens.tolist() == [1] * 4
    assert not job.masked.any()
    assert job.labels == ()


def test_rows_may_come_in_any_order(tmp_path: Path) -> None:
    jobs = read_series(
        written(tmp_path, job=[7, 2, 7, 2], iteration=[5, 1, 4, 0], seconds=[3, 1, 2, 4])
    )
    assert [(job.job, job.iteration.tolist(), job.seconds.tolist()) for job in jobs] == [
        ("2", [0, 1], [4, 1]),
        ("7", [4, 5], [2, 3]),
    ]


def test_of_several_ranks_of_an_iteration_the_slowest_counts(tmp_path: Path) -> None:
    (job,) = read_series(written(tmp_path, iteration=[0, 0, 1, 1]))
    assert job.seconds.tolist() == [1.1, 1.3]


def test_iterations_of_another_kind_than_training_are_masked(tmp_path: Path) -> None:
    (job,) = read_series(written(tmp_path, kind=["train", "eval", None, "checkpoint"]))
    assert job.masked.tolist() == [False, True, False, True]


def test_where_no_kind_is_a_known_one_the_most_frequent_is_training(tmp_path: Path) -> None:
    (job,) = read_series(written(tmp_path, kind=["fit", "fit", "fit", "probe"]))
    assert job.masked.tolist() == [False, False, False, True]


def test_missing_work_is_that_of_the_iteration_before(tmp_path: Path) -> None:
    (job,) = read_series(written(tmp_path, tokens=[None, 8, 0, 16]))
    assert job.tokens.tolist() == [8, 8, 8, 16]


@pytest.mark.parametrize(
    ("starts", "ends", "labels"),
    [
        ([1] * 4, [3] * 4, ((1, 3),)),
        ([1.0, 1.0, None, None], [2.0, 2.0, None, None], ((1, 2),)),
        ([0, 0, 2, 2], [1, 1, 3, 3], ((0, 1), (2, 3))),
        ([-1] * 4, [-1] * 4, ()),
        ([0] * 4, [0] * 4, ()),
        ([None] * 4, [None] * 4, ()),
        ([1] * 4, [None] * 4, ((1, 3),)),
        ([[0, 2]] * 4, [[1, 3]] * 4, ((0, 1), (2, 3))),
        (["1"] * 4, ["2"] * 4, ((1, 2),)),
    ],
)
def test_labels_are_the_distinct_intervals_of_a_job(
    tmp_path: Path, starts: list[Any], ends: list[Any], labels: object
) -> None:
    (job,) = read_series(written(tmp_path, label_start=starts, label_end=ends))
    assert job.labels == labels


def test_times_that_are_not_positive_are_left_out(tmp_path: Path) -> None:
    (job,) = read_series(written(tmp_path, seconds=[1.0, 0.0, None, float("nan")]))
    assert job.seconds.tolist() == [1.0]


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"seconds": ["x", "y", "z", "?"]}, "seconds: must be numbers"),
        ({"seconds": [0.0, -1.0, 0.0, 0.0]}, "seconds: no row has a positive time"),
        ({"label_start": ["x"] * 4, "label_end": ["y"] * 4}, "must be iteration numbers"),
    ],
)
def test_a_column_that_cannot_be_read_is_named(
    tmp_path: Path, columns: dict[str, Any], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        read_series(written(tmp_path, **columns))


def test_a_file_that_is_none_has_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file"):
        read_series(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("job,iteration")
    with pytest.raises(ValueError, match="not a Parquet file"):
        read_series(tmp_path / "text.parquet")
    pq.write_table(pa.table({"job": ["a"]}), tmp_path / "short.parquet")
    with pytest.raises(ValueError, match="iteration: no such column"):
        read_series(tmp_path / "short.parquet")
    pq.write_table(pa.table({"job": [], "iteration": [], "seconds": []}), tmp_path / "e.parquet")
    with pytest.raises(ValueError, match="no rows"):
        read_series(tmp_path / "e.parquet")
