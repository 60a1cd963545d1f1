"""Dumps in the public format name the rank with the longest work of its own, whatever its clock."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.failslow.core.measures.relative_scores import relative_perf_scores
from services.failslow.core.readers.flight_recorder import own_times, read_dump

MS = 1_000_000
BEGIN_NS = 1_724_779_239_936_775_119
ALL_REDUCE_MS = 5
Encode = Callable[[Any], bytes]


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()


ENCODINGS = pytest.mark.parametrize("encode", [as_json, pickle.dumps])


def an_entry(seq: int, created_ns: int, completed_ns: int | None, **more: Any) -> dict[str, Any]:
    """An entry of version 2.4, as the tutorial of the recorder shows it."""
    return {
        "frames": [{"name": "train", "filename": "train.py", "line": 12}],
        "record_id": seq,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": created_ns,
        "input_sizes": [[1024, 1024]],
        "input_dtypes": ["Float"],
        "output_sizes": [[1024, 1024]],
        "output_dtypes": ["Float"],
        "state": "completed" if completed_ns else "scheduled",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": completed_ns,
        "retired": True,
        "timeout_ms": 600000,
        "is_p2p": False,
        **more,
    }


def a_dump(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "version": "2.4",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
        "pg_status": {"0": {"last_enqueued_collective": 18, "last_completed_collective": 18}},
        "entries": entries,
    }


def a_training(work_ms: list[int], steps: int = 18) -> list[dict[str, Any]]:
    """Ranks that work for so long and then reduce, each with a clock of its own."""
    entries: list[list[dict[str, Any]]] = [[] for _ in work_ms]
    now_ns = BEGIN_NS
    for seq in range(1, steps + 1):
        completed_ns = now_ns + (max(work_ms) + ALL_REDUCE_MS) * MS
        for rank, ms in enumerate(work_ms):
            clock_ns = rank * 3_600 * 1_000 * MS
            entry = an_entry(seq, now_ns + ms * MS + clock_ns, completed_ns + clock_ns)
            entries[rank].append(entry)
        now_ns = completed_ns
    return [a_dump(own) for own in entries]


@ENCODINGS
def test_the_rank_with_the_longest_work_has_the_lowest_score(encode: Encode) -> None:
    dumps = {rank: read_dump(encode(d)) for rank, d in enumerate(a_training([30, 30, 75, 33]))}
    scores = relative_perf_scores(own_times(dumps))
    assert {rank: round(score, 2) for rank, score in scores.items()} == {
        0: 1.0,
        1: 1.0,
        2: 0.4,
        3: 0.91,
    }


def test_collectives_that_some_rank_lacks_are_left_out() -> None:
    first, second = a_training([30, 60])
    first["entries"].append(an_entry(19, BEGIN_NS + 10**12, None))
    del second["entries"][:3]
    dumps = {0: read_dump(as_json(first)), 1: read_dump(as_json(second))}
    scores = relative_perf_scores(own_times(dumps))
    assert scores == {0: 1.0, 1: pytest.approx(0.5)}


def test_older_dumps_and_messages_between_two_ranks_are_read() -> None:
    old = {
        "pg_id": 0,
        "seq_id": 7,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": 10**9,
        "state": "scheduled",
    }
    dump = a_dump([old, an_entry(8, 2 * 10**9, None, is_p2p=True)])
    [collective] = read_dump(as_json(dump))
    assert (collective.id, collective.completed_ns) == (("0", 7, "nccl:all_reduce"), None)


class Malicious:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (print, ("executed",))


def test_a_pickle_builds_plain_values_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="not a plain value: builtins.print"):
        read_dump(pickle.dumps({"entries": [Malicious()]}))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "document", [{}, [], {"entries": 7}, {"entries": [7]}, {"entries": [{"profiling_name": "x"}]}]
)
@ENCODINGS
def test_another_document_is_refused_with_its_place(document: Any, encode: Encode) -> None:
    with pytest.raises(ValueError, match="flight recorder: "):
        read_dump(encode(document))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_dump(data)
    except ValueError as error:
        assert str(error).startswith("flight recorder: ")
