"""Goals of the disciplines, and whether the figures of a run meet them."""

from __future__ import annotations

from typing import Any

from benchmarks.parts.goals import met

Tables = dict[str, dict[str, Any]]
LEAST_RATIO = 2.1
MOST_THROUGHPUT_LOSS = 0.01
LEAST_DECISIONS_PER_S = 100_000
LEAST_REQUESTS_PER_S = 20_000
LEAST_WAIT_RATIO, MOST_WAIT_RATIO = 0.8, 1.25
FIGURES = ("cut_midway", "wasted_tokens")


def goals_of(result: dict[str, Any]) -> dict[str, str]:
    """Return each goal with `met` or `not met` and its figures."""
    return {
        **arena_goals(result["arena"]),
        **abuse_goals(result["abuse"]),
        **lighter_goals(result["abuse_lighter"]),
        **speed_goals(result),
        **wait_goals(result["wait_ratio"], result["wait_ratio_limit"]),
        **known_goals(result["wait_ratio_known_lengths"]),
    }


def arena_goals(arena: Tables) -> dict[str, str]:
    fcfs, vtc, predict, berth = (arena[name] for name in ("fcfs", "vtc", "vtc_predict", "berth"))
    ratio = fcfs["max_gap"] / berth["max_gap"]
    loss = 1 - berth["tokens_per_s"] / fcfs["tokens_per_s"]
    gaps = f"{berth['max_gap']:,} to {predict['max_gap']:,}"
    accumulated = f"{berth['accumulated_gap']:,} to {vtc['accumulated_gap']:,}"
    return {
        f"FCFS's maximum gap is at least {LEAST_RATIO} times Berth's": (
            f"{met(ratio >= LEAST_RATIO)}: {ratio:.2f}"
        ),
        "Berth's maximum gap is at most VTC-predict's": (
            f"{met(berth['max_gap'] <= predict['max_gap'])}: {gaps}"
        ),
        "Berth's accumulated gap is at most VTC's": (
            f"{met(berth['accumulated_gap'] <= vtc['accumulated_gap'])}: {accumulated}"
        ),
        "Berth drops nothing": f"{met(not berth['refused'])}: {berth['refused']}",
        "Berth's throughput is within 1 % of FCFS's": (
            f"{met(loss <= MOST_THROUGHPUT_LOSS)}: {-loss:+.2%}"
        ),
    }


def abuse_goals(abuse: Tables) -> dict[str, str]:
    cells = list(abuse["berth"])
    cut, wasted = (sum(abuse["berth"][cell][key] for cell in cells) for key in FIGURES)
    return {
        "benign p99 wait below VTC's and FairServe's": waits_text(abuse),
        "no interaction cut midway, no token wasted": (
            f"{met(not cut and not wasted)}: {cut} interactions, {wasted:,} tokens"
        ),
    }


def lighter_goals(abuse: Tables) -> dict[str, str]:
    """Return the goal of waits at the lighter load; empty where it was not run."""
    return {"the same at the lighter load": waits_text(abuse)} if abuse else {}


def waits_text(abuse: Tables) -> str:
    cells = list(abuse["berth"])
    lower = [
        cell
        for cell in cells
        if abuse["berth"][cell]["benign_p99_s"]
        < min(abuse[other][cell]["benign_p99_s"] for other in ("vtc", "fairserve"))
    ]
    return f"{met(len(lower) == len(cells))}: {len(lower)} of {len(cells)} cells"


def known_goals(ratio: dict[str, Any]) -> dict[str, str]:
    """Return the goal of waits where limits are the lengths of answers."""
    low, high = ratio["p10"], ratio["p90"]
    is_met = low >= LEAST_WAIT_RATIO and high <= MOST_WAIT_RATIO
    figures = f"{low:.2f} to {high:.2f}, median {ratio['p50']:.2f}"
    return {"the same where answers reach their limits": f"{met(is_met)}: {figures}"}


def wait_goals(ratio: dict[str, Any], limit: dict[str, Any]) -> dict[str, str]:
    """Return the goal with the figures, and those of the best estimate without the lengths."""
    low, high = ratio["p10"], ratio["p90"]
    is_met = low >= LEAST_WAIT_RATIO and high <= MOST_WAIT_RATIO
    name = f"estimated to real wait within {LEAST_WAIT_RATIO} to {MOST_WAIT_RATIO}, p10 to p90"
    figures = f"{low:.2f} to {high:.2f}, median {ratio['p50']:.2f}"
    best = f"{limit['p10']:.2f} to {limit['p90']:.2f}"
    return {name: f"{met(is_met)}: {figures}; with lengths unknown at best {best}"}


def speed_goals(result: dict[str, Any]) -> dict[str, str]:
    names = {
        "core_decisions_per_s": "decisions per CPU second with 100 tenants queued",
        "core_decisions_per_s_10000_tenants": "decisions per CPU second with 10,000 tenants queued",
    }
    whole = result["decider_requests_per_s"]["100"]
    decider = f"{LEAST_REQUESTS_PER_S:,} requests per CPU second of the whole decider"
    return {
        **{
            f"{LEAST_DECISIONS_PER_S:,} {name}": (
                f"{met(result[key] >= LEAST_DECISIONS_PER_S)}: {result[key]:,.0f}"
            )
            for key, name in names.items()
        },
        f"{decider} with 100 tenants queued": (
            f"{met(whole >= LEAST_REQUESTS_PER_S)}: {whole:,.0f}"
        ),
    }
