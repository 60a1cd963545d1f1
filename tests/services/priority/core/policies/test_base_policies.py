"""Each base policy against an order worked out by hand, and array keys against scalar ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from services.priority.core.history import distributions as history
from services.priority.core.policies import keys
from services.priority.core.policies.ordering import order_by
from services.priority.core.queue.queue_view import QueueView
from services.priority.core.state import PriorityState
from shared.contracts.access import TenantRegistered
from shared.contracts.pools import RuntimeSource
from tests.harness.decider import AT, an_input, fold, given, run
from tests.services.priority.core.lane import (
    PRIORITY,
    admitted,
    node,
    order,
    placed,
    pool,
    ranked,
    running,
    stopped,
    succeeded,
)

HOUR = 3_600_000


def of_duration(seconds: float, restart_s: float = 0.0) -> dict[str, Any]:
    return {"simulated": {"duration_s": seconds, "restart_s": restart_s}}


def scores(state: PriorityState, now: int) -> dict[str, float]:
    result = ranked(state, [], now)
    return {job.job_id: job.score for job in (*result.ranked, *result.running)}


def test_smallest_first_orders_by_gpus_alone() -> None:
    state = given(PRIORITY, pool("smallest_first"))
    jobs = [admitted("a", gpus=8), admitted("b", gpus=1, at=AT + 1), admitted("c", gpus=4)]
    assert order(state, jobs, AT + 1) == ["b", "c", "a"]


def test_sjf_orders_by_the_users_limit() -> None:
    state = given(PRIORITY, pool("sjf", runtime="user"))
    jobs = [admitted("a", walltime_s=300), admitted("b", walltime_s=100, gpus=8)]
    assert order(state, jobs) == ["b", "a"]


def test_saf_weighs_time_by_gpus() -> None:
    """300 x 1 < 100 x 8."""
    state = given(PRIORITY, pool("saf", runtime="user"))
    jobs = [admitted("a", walltime_s=100, gpus=8), admitted("b", walltime_s=300)]
    assert order(state, jobs) == ["b", "a"]


def test_f1_counts_submission_from_the_pools_first_job() -> None:
    """b: log10(1000) x 1 + 870 x log10(10) = 873; a: log10(1000) x 8 + 870 x log10(1) = 24."""
    state = given(PRIORITY, pool("f1", runtime="user"))
    b = admitted("b", walltime_s=1000, at=AT + 10_000)
    run(PRIORITY, state, [admitted("a", walltime_s=1000, gpus=8), b], AT + 10_000)
    assert scores(state, AT + 15_000) == {"a": pytest.approx(-24), "b": pytest.approx(-873)}


def test_wfp3_prefers_short_jobs_that_wait_long() -> None:
    """After 100 s: a (100/50)^3 x 1 = 8, b (100/100)^3 x 4 = 4, c 90 s later (10/50)^3 x 8."""
    state = given(PRIORITY, pool("wfp3", runtime="user"))
    jobs = [
        admitted("a", walltime_s=50),
        admitted("b", walltime_s=100, gpus=4),
        admitted("c", walltime_s=50, gpus=8, at=AT + 90_000),
    ]
    run(PRIORITY, state, jobs, AT + 90_000)
    assert scores(state, AT + 100_000) == {
        "a": pytest.approx(8),
        "b": pytest.approx(4),
        "c": pytest.approx(0.064),
    }


def test_unicep_divides_the_wait_by_time_and_by_the_logarithm_of_the_gpus() -> None:
    """After 600 s: a 600 / (log2(4) x 100) = 3, b 600 / (log2(2) x 300) = 2."""
    state = given(PRIORITY, pool("unicep", runtime="user"))
    jobs = [admitted("b", walltime_s=300, gpus=2), admitted("a", walltime_s=100, gpus=4)]
    run(PRIORITY, state, jobs)
    assert scores(state, AT + 600_000) == {
        "a": pytest.approx(3, abs=1e-5),
        "b": pytest.approx(2, abs=1e-5),
    }


def test_multifactor_adds_real_waits_size_and_fair_share() -> None:
    """16 GPUs, half-way to the full age: a 500 + 1000 x 15/16; red used all there was used."""
    state = given(PRIORITY, pool("multifactor"))
    run(PRIORITY, state, [node("n", 16)])
    jobs = [admitted("old"), *running("old"), admitted("a"), admitted("b", tenant="blue", gpus=8)]
    run(PRIORITY, state, jobs)
    result = scores(state, AT + 6 * HOUR)
    share_of_red = 2.0 ** -(1.0 / 0.5)
    assert result["a"] == pytest.approx(500 + 1000 * 15 / 16 + 1000 * share_of_red)
    assert result["b"] == pytest.approx(500 + 1000 * 8 / 16 + 1000 * 1.0)


def test_multifactor_decays_use_by_the_half_life() -> None:
    state = given(PRIORITY, pool("multifactor", half_life_s=3600))
    heavy = TenantRegistered(tenant="blue", default_pool="p", weight=3)
    both = [admitted("r"), *running("r"), admitted("b", tenant="blue"), placed("b", tenant="blue")]
    run(PRIORITY, state, [an_input(heavy, "access"), node("n", 8), *both])
    run(PRIORITY, state, [succeeded("r", AT + HOUR)], AT + HOUR)
    at = AT + 2 * HOUR
    run(PRIORITY, state, [admitted("r2", at=at), admitted("b2", tenant="blue", at=at)], at)
    # Red's hour counts half by now, blue's two hours run on: 1800 and 7200 GPU-seconds.
    small = 1000 * 7 / 8
    result = scores(state, at + 5000)
    red, blue = 2 ** -((1800 / 9000) / (1 / 4)), 2 ** -((7200 / 9000) / (3 / 4))
    assert result["r2"] == pytest.approx(small + 1000 * red, rel=1e-3)
    assert result["b2"] == pytest.approx(small + 1000 * blue, rel=1e-3)


def ended(state: PriorityState, name: str, seconds: int, *, at: int = AT, user: str = "u") -> None:
    """A job of that name, in a tenant of that name, has run that long."""
    job = f"{name}-{seconds}"
    entered = admitted(job, name=name, user=user, tenant=name, at=at)
    run(PRIORITY, state, [entered, *running(job, tenant=name, at=at)], at)
    end = at + seconds * 1000
    run(PRIORITY, state, [succeeded(job, end)], end)


def test_qssf_predicts_gpu_time_from_history_whatever_the_pool_says() -> None:
    state = given(PRIORITY, pool("qssf", runtime="oracle"))
    for _ in range(9):
        ended(state, "short", 60)
        ended(state, "long", 7200)
    jobs = [
        admitted("a", name="long", tenant="long", user="u"),
        admitted("b", name="short", tenant="short", user="u"),
        admitted("c", name="short", tenant="short", user="u", gpus=64),
    ]
    result = ranked(state, jobs, AT + 3 * HOUR)
    assert [job.job_id for job in result.ranked] == ["b", "a", "c"]
    assert result.runtime == "history"
    assert result.terms["runtime.history"] == 3


def test_las_orders_by_attained_gpu_seconds_and_does_not_stop_equals() -> None:
    """Queues end at 3250, 7200 and 18000 GPU-seconds; within a queue scores are equal."""
    state = given(PRIORITY, pool("las", preemption="ranked"))
    jobs = [admitted("new", at=AT + 1), admitted("a", gpus=1), admitted("b", gpus=8)]
    run(PRIORITY, state, [*jobs, *running("a"), *running("b", gpus=8)], AT + 1)
    result = scores(state, AT + 500_000)
    assert result == {"new": 0.0, "a": 0.0, "b": -1.0}
    assert scores(state, AT + 3_251_000) == {"new": 0.0, "a": -1.0, "b": -3.0}


def test_las_forgets_the_work_that_a_stop_undid() -> None:
    state = given(PRIORITY, pool("las"))
    run(PRIORITY, state, [admitted("a", gpus=8, checkpoint_interval_s=600), *running("a", gpus=8)])
    run(PRIORITY, state, stopped("a", AT + 1_000_000), AT + 1_000_000)
    # 600 of the 1000 s are kept: 4800 GPU-seconds, the second queue.
    assert scores(state, AT + 1_006_000) == {"a": -1.0}


def test_srtf_and_srsf_by_oracle_are_remaining_time_and_service() -> None:
    job = admitted("a", gpus=8, checkpoint_interval_s=300, **of_duration(1000, restart_s=50))
    inputs = [job, *running("a", gpus=8), admitted("b", **of_duration(900)), admitted("c")]
    for policy, a, b in (("srtf", -600.0, -900.0), ("srsf", -math.log(4800), -math.log(900))):
        state = given(PRIORITY, pool(policy, runtime="oracle", preemption="ranked"))
        run(PRIORITY, state, inputs)
        result = ranked(state, [], AT + 400_000)
        by_id = {job.job_id: job.score for job in (*result.ranked, *result.running)}
        assert by_id["a"] == pytest.approx(a) and by_id["b"] == pytest.approx(b)
        assert result.runtime == "oracle"
        assert result.terms["runtime.oracle"] == 2 and result.terms["runtime.prior"] == 1


def test_a_restart_is_no_work() -> None:
    """450 s of 1000 are done at the first stop, 300 of them kept; then 50 s of restart come."""
    state = given(PRIORITY, pool("srtf", runtime="oracle"))
    job = admitted("a", checkpoint_interval_s=300, **of_duration(1000, restart_s=50))
    run(PRIORITY, state, [job, *running("a")])
    run(PRIORITY, state, stopped("a", AT + 450_000), AT + 450_000)
    assert scores(state, AT + 460_000) == {"a": -700.0}
    run(PRIORITY, state, running("a", at=AT + 500_000), AT + 500_000)
    run(PRIORITY, state, stopped("a", AT + 840_000), AT + 840_000)
    # 340 s, of which 290 are work: no whole checkpoint more.
    assert scores(state, AT + 850_000) == {"a": -700.0}


def test_srsf_by_history_expects_more_of_a_job_that_outlived_its_like() -> None:
    state = given(PRIORITY, pool("srsf", preemption="ranked"))
    for _ in range(30):
        ended(state, "train", 100)
    ended(state, "train", 50_000)
    at = AT + 60_000_000
    alike: dict[str, Any] = {"name": "train", "tenant": "train", "user": "u", "at": at}
    run(PRIORITY, state, [admitted("a", **alike), *running("a", at=at), admitted("b", **alike)], at)
    fresh, late = scores(state, at + 5_000), scores(state, at + 3_000_000)
    assert fresh["a"] == pytest.approx(fresh["b"], abs=0.01) and fresh["b"] == late["b"]
    assert late["a"] < late["b"] - 1.0, "its like are short, so the rest is of the long kind"


def test_gittins_prefers_the_job_that_may_end_at_once() -> None:
    """Nine of ten `test` jobs end within a minute: a fresh one goes before a sure half hour."""
    state = given(PRIORITY, pool("gittins"))
    for place in range(60):
        ended(state, "test", 30_000 if place % 10 == 0 else 50)
        ended(state, "sure", 1800)
    at = AT + 40_000_000
    names = ("sure", "test")
    jobs = [admitted(name, name=name, tenant=name, user="u", at=at) for name in names]
    assert order(state, jobs, at) == ["test", "sure"]


def test_a_source_without_a_value_falls_back_to_the_next_and_is_counted() -> None:
    state = given(PRIORITY, pool("sjf", runtime="oracle"))
    jobs = [admitted("a", **of_duration(50)), admitted("b", walltime_s=70), admitted("c")]
    result = ranked(state, jobs)
    assert [job.score for job in result.ranked[:2]] == [-50.0, -70.0]
    assert result.terms == {"runtime.oracle": 1, "runtime.user": 1, "runtime.prior": 1}


def test_only_the_oracle_reads_the_duration() -> None:
    for source in ("user", "history"):
        state = given(PRIORITY, pool("sjf", runtime=source))
        jobs = [admitted("a", **of_duration(5)), admitted("b", **of_duration(50_000))]
        result = ranked(state, jobs)
        assert result.ranked[0].score == result.ranked[1].score
        assert result.terms == {"runtime.prior": 2}


def test_times_are_cluster_seconds() -> None:
    state = given(PRIORITY, pool("srtf", runtime="oracle", time_scale=100))
    run(
        PRIORITY,
        state,
        [admitted("a", checkpoint_interval_s=60, **of_duration(1000)), *running("a")],
    )
    run(PRIORITY, state, stopped("a", AT + 2_500), AT + 2_500)
    assert scores(state, AT + 10_000) == {"a": -760.0}


def test_a_class_goes_first_under_every_policy() -> None:
    for policy in ("fcfs", "sjf", "srsf", "fair_share", "las"):
        state = given(PRIORITY, pool(policy))
        jobs = [admitted("a", cls="low"), admitted("s", spot=True), admitted("b", cls="high")]
        assert order(state, jobs) == ["b", "a", "s"], policy


def test_equals_go_by_submission_and_then_by_id() -> None:
    state = given(PRIORITY, pool("smallest_first"))
    jobs = [
        admitted("c", at=AT + 1),
        admitted("b", at=AT + 1),
        admitted("z"),
        admitted("a", at=AT + 1),
    ]
    assert order(state, jobs, AT + 1) == ["z", "a", "b", "c"]


def test_running_jobs_are_scored_when_rank_may_stop_them() -> None:
    quiet = given(PRIORITY, pool("sjf", runtime="user"))
    loud = given(PRIORITY, pool("sjf", runtime="user", preemption="ranked"))
    for state in (quiet, loud):
        jobs = [admitted(n, walltime_s=w) for n, w in (("a", 900.0), ("b", 100.0), ("c", 500.0))]
        run(PRIORITY, state, [*jobs, *running("a"), *running("b")])
    assert ranked(quiet, [], AT + 5000).running == ()
    result = ranked(loud, [], AT + 5000)
    assert [(job.job_id, job.score) for job in result.running] == [("a", -900.0), ("b", -100.0)]
    assert [(job.job_id, job.score) for job in result.ranked] == [("c", -500.0)]


def test_under_fair_share_no_waiting_job_leads_a_running_one() -> None:
    state = given(PRIORITY, pool("fair_share", preemption="ranked"))
    result = ranked(state, [admitted("a"), admitted("b"), admitted("c"), *running("a")])
    assert [job.score for job in result.ranked] == [2.0, 1.0]
    assert [job.score for job in result.running] == [3.0]


def a_queue(seed: int = 7) -> tuple[PriorityState, int]:
    """300 jobs of all kinds, some running, some stopped before, after 200 that ended."""
    rng = np.random.default_rng(seed)
    state = given(PRIORITY, pool("fcfs", rank_ms=60_000))
    run(PRIORITY, state, [node(f"n{n}", 64) for n in range(10)])
    for n in range(200):
        ended(state, f"name{n % 7}", int(rng.lognormal(6, 2)) + 1, user=f"u{n % 3}")
    for n in range(300):
        spec: dict[str, Any] = {"name": f"name{n % 9}", "user": f"u{n % 4}"}
        if n % 2:
            spec["walltime_s"] = float(rng.integers(1, 100_000))
        if n % 3:
            spec |= of_duration(float(rng.lognormal(7, 2)), restart_s=30.0)
        if n % 5:
            spec["checkpoint_interval_s"] = 60.0
        at = AT + int(rng.integers(0, 10_000_000))
        job = admitted(f"j{n}", tenant=f"t{n % 3}", at=at, gpus=float(1 << n % 5), **spec)
        run(PRIORITY, state, [job], at)
        if n % 4 == 0:
            run(PRIORITY, state, running(f"j{n}", tenant=f"t{n % 3}", at=at + 77), at + 77)
        if n % 8 == 0:
            run(PRIORITY, state, stopped(f"j{n}", at + 500_007), at + 500_007)
        if n % 16 == 0:
            again = running(f"j{n}", tenant=f"t{n % 3}", at=at + 600_001)
            run(PRIORITY, state, again, at + 600_001)
    return state, AT + 12_345_678


QUEUE, NOW = a_queue()


def run_s(view: QueueView, source: RuntimeSource, i: int) -> float:
    p = view.distribution[i]
    candidates = {
        "oracle": (view.duration_s[i], view.walltime_s[i]),
        "user": (view.walltime_s[i],),
        "history": (),
    }[source]
    return next((float(s) for s in candidates if not math.isnan(s)), history.mean_left_s(p, 0.0))


def left_s(view: QueueView, source: RuntimeSource, i: int) -> float:
    attained = float(view.attained_s[i])
    whole_s = run_s(view, source, i)
    if source == "history" or whole_s == history.mean_left_s(view.distribution[i], 0.0):
        return history.mean_left_s(view.distribution[i], attained)
    return max(0.001, whole_s - attained)


def scalar_key(policy: str, view: QueueView, source: RuntimeSource, i: int) -> float:
    gpus, wait = float(view.gpus[i]), float(view.wait_s[i])
    attained, submit = float(view.attained_s[i]), float(view.submit_s[i])
    match policy:
        case "fcfs" | "priority_class":
            return keys.fcfs(submit)
        case "smallest_first":
            return keys.smallest_first(gpus)
        case "sjf":
            return keys.sjf(run_s(view, source, i))
        case "saf":
            return keys.saf(run_s(view, source, i), gpus)
        case "f1":
            return keys.f1(run_s(view, source, i), gpus, submit)
        case "wfp3":
            return keys.wfp3(wait, run_s(view, source, i), gpus)
        case "unicep":
            return keys.unicep(wait, run_s(view, source, i), gpus)
        case "qssf":
            return keys.saf(run_s(view, "history", i), gpus)
        case "las":
            return keys.las(attained * gpus)
        case "gittins":
            return history.gittins_s(view.distribution[i], attained) * gpus
        case "srtf":
            return keys.srtf(left_s(view, source, i))
        case _:
            return keys.srsf(left_s(view, source, i), gpus)


@pytest.mark.parametrize("source", ["user", "history", "oracle"])
@pytest.mark.parametrize(
    "policy",
    [
        "fcfs",
        "priority_class",
        "smallest_first",
        "sjf",
        "saf",
        "f1",
        "wfp3",
        "unicep",
        "qssf",
        "las",
        "gittins",
        "srtf",
        "srsf",
    ],
)
def test_array_keys_equal_the_scalar_functions_bit_for_bit(
    policy: str, source: RuntimeSource
) -> None:
    view = QUEUE.view(NOW)
    assert view.waiting and (view.since_go_s > 0).sum() > 12, "jobs of both kinds are looked at"
    result = order_by(policy, QUEUE, view, NOW, source)
    wanted = [scalar_key(policy, view, source, i) for i in range(len(view.rows))]
    if policy in ("gittins", "srsf"):
        assert result.scores.tolist() == [-math.log(max(key, 1e-9)) for key in wanted]
    else:
        assert result.scores.tolist() == [-key for key in wanted]


def test_multifactor_arrays_equal_the_scalar_function() -> None:
    view = QUEUE.view(NOW)
    result = order_by("multifactor", QUEUE, view, NOW, "user")
    shares = shares_by_hand()
    for i in range(len(view.rows)):
        share = shares[int(str(view.job_ids[i])[1:]) % 3]
        wait, gpus = float(view.wait_s[i]), float(view.gpus[i])
        wanted = -keys.multifactor(wait, gpus, 640.0, share)
        assert result.scores[i] == pytest.approx(wanted, rel=1e-12)


def shares_by_hand() -> list[float]:
    half_life = QUEUE.half_life_wall_s
    used = {name: usage.decayed(NOW, half_life) for name, usage in QUEUE.usage.items()}
    for job in QUEUE.jobs.values():
        if job.phase == "running":
            since, gpus = (QUEUE.table.get(job.row, c) for c in ("since_ms", "held_gpus"))
            used[job.tenant] = used.get(job.tenant, 0.0) + gpus * (NOW - since) / 1000
    total, names = sum(used.values()), list(QUEUE.tenants)
    return [2.0 ** -(used.get(f"t{n}", 0.0) / total * len(names)) for n in range(3)]


def test_a_view_of_a_fold_from_the_ledger_is_the_same_view() -> None:
    state, events = given(PRIORITY, pool("srsf")), []
    jobs = [admitted(f"j{n}", gpus=1 + n % 4, checkpoint_interval_s=10) for n in range(150)]
    for at, inputs in (
        (AT, jobs[:100]),
        (AT + 5_000, [item for n in range(40) for item in running(f"j{n}", at=AT + 5_000)]),
        (AT + 90_000, [succeeded(f"j{n}", AT + 90_000) for n in range(20)]),
        (AT + 91_000, [*stopped("j25", AT + 91_000), *stopped("j31", AT + 91_000), *jobs[100:]]),
    ):
        events += [(event, at) for event in run(PRIORITY, state, inputs, at)]
    again = given(PRIORITY, pool("srsf"))
    for event, at in events:
        fold(PRIORITY, again, [event], at=at)
    assert again == state and again.table == state.table
    assert state.table.values.shape[1] >= 128, "the table has grown"


def test_the_first_of_a_long_queue_are_those_of_the_whole_queue_sorted() -> None:
    """3,000 jobs with few sizes and few moments: the cut lies among equals."""
    state = given(PRIORITY, pool("smallest_first", rank_ms=60_000))
    jobs = [admitted(f"j{n * 7 % 3000}", gpus=1 << n % 5, at=AT + n % 3) for n in range(3000)]
    run(PRIORITY, state, jobs, AT + 3)
    view = state.view(AT + 3)
    wanted = sorted(
        range(3000), key=lambda i: (view.gpus[i], view.submit_s[i], str(view.job_ids[i]))
    )
    result = order_by("smallest_first", state, view, AT + 3, "history").first(view)
    assert result == wanted[:512]
