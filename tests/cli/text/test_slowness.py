from __future__ import annotations

from typing import Any

from cli.text.slowness import (
    ALONE,
    NOT_PLACED,
    UNKNOWN,
    open_suspicions,
    slowness_lines,
    summary_row,
)

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
    placed = row("job.placed.v1", 1, allocations=[{"rank": 0}, {"rank": 1}])
    assert slowness_lines([placed], NOW) == [UNKNOWN]


def test_a_job_without_peers_says_by_what_it_is_judged() -> None:
    assert slowness_lines([], NOW) == [UNKNOWN, NOT_PLACED]
    placed = row("job.placed.v1", 1, allocations=[{"rank": 0}])
    assert slowness_lines([placed], NOW) == [UNKNOWN, ALONE]


def test_a_job_that_is_slow_from_its_start_is_beside_earlier_runs() -> None:
    born = {**JOB, "earlier_runs": 4, "score": 8.1}
    text = slowness_lines([row("fault.suspected.v1", NOW - 60_000, **born)], NOW)
    assert text[1] == (
        "  evidence: slow since its first iterations beside 4 earlier runs of its name, tenant, GPU"
        " types and size: robust z 8.1"
    )


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


PLAN = {
    "plan_id": "j1/1/migrate/1",
    "fault_ids": ["j1/1/2/1"],
    "node_ids": ["n7"],
    "level": "migrate",
    "accumulated_loss_s": 90.4,
    "cost_s": 60.0,
    "expected_gain_s": 300.0,
}


def test_a_plan_says_what_it_costs_and_how_to_approve_it() -> None:
    suspected = row("fault.suspected.v1", 1_000_000, **WORKER)
    planned = row("mitigation.planned.v1", 1_010_000, **PLAN)
    text = slowness_lines([suspected, planned], NOW)
    assert text[3].startswith("  plan j1/1/migrate/1 at ")
    assert text[3].endswith(
        "migrate the workers of n7; 90 s lost so far, 60 s of stop, 300 s expected gain"
    )
    assert text[4] == "    not approved: berth faults approve j1/1/migrate/1"
    end = {"plan_id": "j1/1/migrate/1", "reason": "job_ended"}
    over = row("mitigation.cleared.v1", 1_020_000, **end)
    text = slowness_lines([suspected, planned, over], NOW)
    assert text[4] == "    not applied; it is over: the job's attempt ended"
    applied = row("mitigation.applied.v1", 1_020_000, plan_id="j1/1/migrate/1")
    assert slowness_lines([suspected, planned, applied], NOW)[4].startswith("    approved at ")
    again = row("mitigation.applied.v1", 1_060_000, plan_id="j1/1/migrate/1")
    twice = slowness_lines([suspected, planned, applied, again], NOW)[4]
    assert twice.endswith(", tried 2 times as there was no room")


def test_a_plan_says_which_nodes_it_cordoned_once_it_is_carried_out() -> None:
    own = {"plan_id": PLAN["plan_id"], "by": "automatic", "cordons": True, "node_ids": ["n7"]}
    rows = [
        row("fault.suspected.v1", 1_000_000, **WORKER),
        row("mitigation.planned.v1", 1_010_000, **PLAN),
        row("mitigation.applied.v1", 1_020_000, **own),
    ]
    assert "cordoned" not in slowness_lines(rows, NOW)[4]
    carried_out = row("mitigation.carried-out.v1", 1_030_000, plan_id=PLAN["plan_id"])
    assert slowness_lines([*rows, carried_out], NOW)[4].endswith("; cordoned n7")


def test_advice_is_for_the_framework_and_its_approval_says_that_it_is_done() -> None:
    suspected = row("fault.suspected.v1", 1_000_000, **WORKER)
    planned = row("mitigation.planned.v1", 1_010_000, **{**PLAN, "actor": "framework"})
    text = slowness_lines([suspected, planned], NOW)
    assert text[4] == "    advice; once it is done: berth faults approve j1/1/migrate/1"
    applied = row("mitigation.applied.v1", 1_020_000, plan_id="j1/1/migrate/1")
    assert slowness_lines([suspected, planned, applied], NOW)[4].startswith("    done at ")


def test_a_plan_that_placement_turns_down_says_why_until_it_is_carried_out() -> None:
    applied = row("mitigation.applied.v1", 1_020_000, plan_id=PLAN["plan_id"])
    before = [
        row("fault.suspected.v1", 1_000_000, **WORKER),
        row("mitigation.planned.v1", 1_010_000, **PLAN),
        applied,
    ]

    def turned_down(reason: str, plan_id: object = PLAN["plan_id"]) -> dict[str, Any]:
        return row("mitigation.turned-down.v1", 1_021_000, plan_id=plan_id, reason=reason)

    lines = slowness_lines([*before, turned_down("no_room")], NOW)
    assert lines[4].startswith("    approved at ")
    assert lines[5].startswith("    not carried out at ")
    assert lines[5].endswith(
        ": no other node has room; the job leaves before queued jobs start once one has"
    )
    final = slowness_lines([*before, turned_down("no_checkpoints")], NOW)[5]
    assert final.endswith(": the job states no checkpoint_interval_s")
    over = slowness_lines([*before, turned_down("no_room"), turned_down("over")], NOW)
    assert over[5] == "    not carried out before it was over, as no other node had room"
    end = row("mitigation.cleared.v1", 1_030_000, plan_id=PLAN["plan_id"], reason="job_ended")
    assert slowness_lines([*before, turned_down("no_room"), end], NOW)[5] == over[5]
    done = row("mitigation.carried-out.v1", 1_030_000, plan_id=PLAN["plan_id"])
    assert len(slowness_lines([*before, turned_down("no_room"), done], NOW)) == 5
    assert len(slowness_lines([*before, turned_down("no_room", "another")], NOW)) == 5


def test_a_plan_to_measure_names_the_nodes_and_what_its_verdict_cordoned() -> None:
    plan = PLAN | {"plan_id": "j1/1/validate/1", "level": "validate", "node_ids": ["n1", "n2"]}
    suspected = row("fault.suspected.v1", 1_000_000, **WORKER)
    planned = row("mitigation.planned.v1", 1_010_000, **plan)
    named = {"plan_id": "j1/1/validate/1", "level": "validate", "by": "automatic"}
    applied = row("mitigation.applied.v1", 1_020_000, **named)
    text = slowness_lines([suspected, planned, applied], NOW)
    assert "measure n1, n2 and the links between them; " in text[3]
    verdict = {"node_ids": ["n2"], "cordons": True, "reason": "gpu of n2: 1.40 times the median"}
    cordoned = row("mitigation.applied.v1", 1_060_000, **named, **verdict)
    text = slowness_lines([suspected, planned, applied, cordoned], NOW)
    assert text[4].endswith("; cordoned n2 (gpu of n2: 1.40 times the median)")


def test_a_plan_for_another_fault_is_not_shown() -> None:
    suspected = row("fault.suspected.v1", 1_000_000, **WORKER)
    other = row("mitigation.planned.v1", 1_010_000, **{**PLAN, "fault_ids": ["j1/1/3/1"]})
    assert not any("plan" in line for line in slowness_lines([suspected, other], NOW))


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


def test_the_cause_has_its_part_and_confidence_or_is_unknown() -> None:
    known = {
        "cause": "compute",
        "part": "gpu",
        "cause_confidence": 0.83,
        "cause_evidence": ["gpu of rank 2: 1.50 times the median of its peers"],
    }
    lines = slowness_lines([row("fault.suspected.v1", NOW, **{**JOB, **known})], NOW)
    assert lines[2] == (
        "  cause: compute of a gpu, confidence 0.83 (gpu of rank 2: 1.50 times the median of its"
        " peers)"
    )
    unknown = slowness_lines([row("fault.suspected.v1", NOW, **{**JOB, "cause": "unknown"})], NOW)
    assert unknown[2] == "  cause: unknown (nothing shows it)"
    assert unknown[-1].startswith("  which node or link: berth nodes validate --job j1")
    worker = row("fault.suspected.v1", NOW, **WORKER, cause="compute")
    placed = row("job.placed.v1", 1, allocations=[{"rank": 0, "node_id": "n7"}])
    alone = row("fault.suspected.v1", NOW, **{**JOB, "cause": "unknown"})
    assert slowness_lines([placed, alone], NOW)[-1].startswith("  all of it runs on n7: ")
    both = [row("fault.suspected.v1", NOW, **{**JOB, "cause": "unknown"}), worker]
    assert not any("berth nodes validate" in line for line in slowness_lines(both, NOW))


def test_a_pool_is_summed_up_in_gpu_hours() -> None:
    pool = {
        "pool": "gpu",
        "mitigation": "automatic",
        "is_open": True,
        "nodes": 20,
        "out_of_use": 2,
        "most": 2,
        "worker_strictness": 1.25,
        "job_strictness": None,
        "faults": 4,
        "open": 1,
        "false_alarms": 1,
        "lost_gpu_s": 7200.0,
        "cost_gpu_s": 360.0,
        "avoided_gpu_s": 36_000.0,
    }
    cells = summary_row(pool)
    assert cells[:3] == ("gpu", "automatic", "open: 2 of 20 nodes out of use, 2 may be")
    assert cells[3:] == (4, 1, 1, "1.25/1", "2.00", "0.10", "10.00")
    fresh = {**pool, "mitigation": None, "is_open": None}
    assert summary_row(fresh)[:3] == ("gpu", "approve", "-")


def test_only_suspicions_that_are_open_are_named() -> None:
    timeline = [row("fault.suspected.v1", NOW, **JOB)]
    (line,) = open_suspicions(timeline, "j1")
    assert line.startswith("the job as a whole is suspected to be slow, ")
    assert line.endswith(" berth why-slow j1")
    ended = row("fault.cleared.v1", NOW + 1, fault_id=JOB["fault_id"], reason="recovered")
    assert open_suspicions([*timeline, ended], "j1") == []


def test_advice_has_the_split_of_micro_batches_and_the_warm_up_of_stages() -> None:
    plan = {
        "plan_id": "j1/1/redistribute/1",
        "level": "redistribute",
        "actor": "framework",
        "node_ids": ["n7"],
        "fault_ids": ["j1/1/2/1"],
        "expected_gain_s": 10.0,
        "cost_s": 5.0,
        "accumulated_loss_s": 6.0,
    }
    schedule = {
        "warmup": [5, 3, 1],
        "activations": [6, 3, 1],
        "iteration_s": 0.57,
        "unadapted_s": 1.12,
    }
    timeline = [
        row("fault.suspected.v1", NOW - 60_000, **WORKER),
        row("mitigation.planned.v1", NOW, **plan, microbatches=[17, 17, 11], schedule=schedule),
    ]
    text = slowness_lines(timeline, NOW)
    assert "    micro-batches by data-parallel group: 17, 17, 11" in text
    assert "    warm-up forwards by stage: 5, 3, 1; activations held: 6, 3, 1" in text
    assert "    predicted iteration: 0.57 s instead of 1.12 s" in text
