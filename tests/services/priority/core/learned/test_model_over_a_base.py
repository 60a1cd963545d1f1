"""A learned policy over a base: its bands come first, the base decides within them; models without
preemption and without history."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.decide import Priority
from services.priority.core.history.distributions import (
    BINS,
    fill_prior,
    gittins_s,
    mean_left_s,
    quantile_s,
)
from services.priority.core.learned.features import SCHEMA, compute_features
from services.priority.core.learned.model import BadModel, LearnedModel, load_model, model_name
from services.priority.core.policies import keys
from services.priority.core.policies.base_policies import POLICIES
from services.priority.core.state import PriorityState
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import QueueRanked
from shared.ledger.decider import Input
from tests.harness.decider import AT, given, run
from tests.services.priority.core.lane import admitted, node, only, pool, running, succeeded
from tests.services.priority.core.networks import manifest, network, weights


def banded(band: float, **given_weights: float) -> LearnedModel:
    model = network(weights(**given_weights))
    return load_model(manifest(model, band=band), model)


def jobs_of_all_sizes() -> list[Input]:
    """Return jobs of all sizes with various limits, one after the other."""
    sizes = [4, 1, 8, 2, 1, 16, 2, 8]
    return [node("n", 64)] + [
        admitted(f"j{n}", gpus=gpus, at=AT + 1000 * n, walltime_s=100.0 * (1 + (n * 5) % 7))
        for n, gpus in enumerate(sizes)
    ]


def order_under(decider: Priority, base: str, learned: str | None) -> list[str]:
    state = given(decider, pool(base, learned=learned, runtime="user", rank_ms=0))
    result = only(run(decider, state, jobs_of_all_sizes(), AT + 10_000), QueueRanked)
    return [job.job_id for job in result.ranked]


@pytest.mark.parametrize("base", [*POLICIES, "fair_share"])
def test_jobs_that_the_network_cannot_distinguish_go_in_the_order_of_the_base(base: str) -> None:
    """All scores are equal: the order is the base's own, whichever that is."""
    decider = Priority({"even": banded(0.5)})
    assert order_under(decider, base, "even") == order_under(decider, base, None)


def test_bases_order_jobs_within_a_band_and_the_network_orders_bands() -> None:
    decider = Priority({"small": banded(0.2, ln_gpus=-1.0)})
    orders = {base: order_under(decider, base, "small") for base in ("fcfs", "sjf", "wfp3")}
    size = {f"j{n}": gpus for n, gpus in enumerate([4, 1, 8, 2, 1, 16, 2, 8])}
    bands = {name: int(np.floor(-np.log(gpus) / 5 / 0.2)) for name, gpus in size.items()}
    for order in orders.values():
        assert [bands[job] for job in order] == sorted(bands.values(), reverse=True)
    assert orders["fcfs"] != orders["sjf"]
    assert len({tuple(order) for order in orders.values()}) > 1


def test_arrays_are_banded_as_scalars_are() -> None:
    draw = np.random.default_rng(3)
    scores, base = draw.normal(size=200) * 20, draw.normal(size=200) * 1e9
    result = banded(0.35).rerank(scores, base)
    expected = [
        keys.banded(s, b, 0.35) for s, b in zip(scores.tolist(), base.tolist(), strict=True)
    ]
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert np.array_equal(banded(0.0).rerank(scores, base), scores)


def test_a_base_never_carries_a_job_into_another_band() -> None:
    """However large a base's scores are, the tilt stays below a hundredth of a band."""
    best = keys.banded(0.99, 1e12, 1.0)
    assert keys.banded(0.0, -1e12, 1.0) < best < 0.0 + keys.TILT
    assert best < keys.banded(1.0, -1e12, 1.0)


@pytest.mark.parametrize(
    ("preemption", "runtime", "name"),
    [
        ("ranked", "history", "berth-preempt"),
        ("class", "history", "berth-queue"),
        ("ranked", "user", "berth-preempt-blind"),
        ("class", "user", "berth-queue-blind"),
        ("class", "oracle", "berth-queue"),
    ],
)
def test_a_family_has_a_network_for_each_way_of_running_a_pool(
    preemption: str, runtime: str, name: str
) -> None:
    settings = pool("fcfs", learned="berth", preemption=preemption, runtime=runtime, rank_ms=0)
    assert model_name("berth", settings) == name
    models: dict[str, LearnedModel | BadModel] = {name: banded(0.5)}
    decider = Priority(models)
    result = only(run(decider, given(decider, settings), [admitted("one")]), QueueRanked)
    assert (result.learned, result.model_sha256) == (name, models[name].sha256)  # type: ignore[union-attr]


def features_by_job(state: PriorityState, by_history: bool) -> dict[str, dict[str, float]]:
    view = state.view(AT + 700_000)
    x, _ = compute_features(view, by_history)
    columns = [name.split("/")[0] for name in SCHEMA.columns]
    rows = zip(view.job_ids.tolist(), x.tolist(), strict=True)
    return {job: dict(zip(columns, row, strict=True)) for job, row in rows}


def after_short_jobs() -> PriorityState:
    """Red's jobs have run for ten seconds; now some wait and one runs for ten minutes."""
    decider = Priority()
    settings: PoolConfigured = pool("fcfs", rank_ms=0)
    state = given(decider, settings)
    for n in range(5):
        run(decider, state, [admitted(f"p{n}", gpus=1), *running(f"p{n}", at=AT)], AT)
        run(decider, state, [succeeded(f"p{n}", AT + 10_000)], AT + 10_000)
    later = AT + 100_000
    run(
        decider,
        state,
        [
            admitted("plain", gpus=1, at=later),
            admitted("short", gpus=1, at=later, walltime_s=60.0),
            admitted("busy", gpus=1, at=later),
            *running("busy", at=later),
            admitted("over", gpus=1, at=later, walltime_s=30.0),
            *running("over", at=later),
        ],
        later,
    )
    return state


def test_without_history_features_follow_from_shape_limit_and_time() -> None:
    state = after_short_jobs()
    blind, informed = features_by_job(state, False), features_by_job(state, True)
    assert blind["plain"]["ln_left_s"] > informed["plain"]["ln_left_s"]
    assert blind["short"]["ln_left_s"] < blind["plain"]["ln_left_s"]
    assert blind["short"]["ln_gittins_s"] < blind["plain"]["ln_gittins_s"]
    p = np.zeros(BINS)
    fill_prior(p)
    for job, attained_s in (("plain", 0.0), ("busy", 600.0)):
        own = blind[job]
        assert own["ln_gittins_s"] == pytest.approx(np.log(gittins_s(p, attained_s) + 1) / 10)
        assert own["ln_left_s"] == pytest.approx(np.log(mean_left_s(p, attained_s) + 1) / 10)
        ratio = quantile_s(p, 0.9) / quantile_s(p, 0.1)
        assert own["ln_p90_over_p10"] == pytest.approx(np.log(ratio) / 10)
    assert all(np.isfinite(list(own.values())).all() for own in blind.values())
    assert blind["over"]["ln_left_s"] < blind["busy"]["ln_left_s"]
