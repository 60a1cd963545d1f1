from __future__ import annotations

from typing import Any

from cli.text.slowness import UNKNOWN, slowness_lines

NOW = 2_000_000
WORKER: dict[str, Any] = {
    "fault_id": "j1/1/2/1",
    "node_id": "n7",
    "slowdown": 1.5,
    "iteration_s": 0.75,
    "peers_s": 0.5,
    "score": 24.0,
    "reports": 3,
}
JOB = {
    **WORKER,
    "fault_id": "j1/1/job/1",
    "node_id": "",
    "kind": "job",
    "since_step": 1200,
    "confidence": 0.99,
    "reports": 6,
}


def row(type_: str, at: int, **data: Any) -> dict[str, Any]:
    return {"type": type_, "at": at, "data": data}


def test_without_a_suspicion_nothing_is_known() -> None:
    assert slowness_lines([row("job.placed.v1", 1)], NOW) == [UNKNOWN]


def test_an_open_slowdown_of_a_job_has_its_change_point_and_size() -> None:
    first, evidence, done = slowness_lines([row("fault.suspected.v1", NOW - 60_000, **JOB)], NOW)
    assert first.startswith("the job as a whole is slow since ")
    assert first.endswith("(1 min 0 s): 0.75 s per iteration, 1.50 times its usual 0.5 s")
    assert "change point at iteration 1200: probability 0.99, shift of 24.0" in evidence
    assert done == "  done: nothing"


def test_a_slow_worker_is_named_with_what_was_done_and_how_it_ended() -> None:
    text = slowness_lines(
        [
            row("fault.suspected.v1", 1_000_000, **WORKER),
            row("job.migrated.v1", 1_010_000, reason="slow_node"),
            row("fault.cleared.v1", 1_020_000, fault_id="j1/1/2/1", reason="job_ended"),
            row("job.migrated.v1", 1_900_000, reason="balance"),
        ],
        NOW,
    )
    assert text[0].startswith("worker 2 on n7 was slow from ")
    assert "1.50 times its peers' 0.5 s" in text[0]
    assert "robust z 24.0 among its peers, in 3 reports in a row" in text[1]
    assert "the job was migrated at" in text[2] and "(its node is slow)" in text[2]
    assert text[2].count("migrated") == 1
    assert text[3] == "  end: the job's attempt ended"


def test_a_verdict_of_an_operator_is_shown() -> None:
    text = slowness_lines(
        [
            row("fault.suspected.v1", 1_000_000, **WORKER),
            row(
                "fault.dismissed.v1",
                1_020_000,
                fault_id="j1/1/2/1",
                false_alarm=True,
                reason="cold cache",
            ),
        ],
        NOW,
    )
    assert text[3] == "  end: marked a false alarm by an operator: cold cache"
