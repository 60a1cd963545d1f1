"""Sentences that sum up the figures of nodes, with the verdict that follows from them."""

from __future__ import annotations

from benchmarks.parts.chaos.figures import Figures, summary_of

ZEROS = ("double_runs", "lost_jobs", "stopped_by_control_plane", "left_behind", "not_recovered")
"""Figures of every part of nodes that must be 0."""
LATER = ("ticks_after_release",)
"""The same, of runs since they are counted."""
LEAST_CUTS = 100
LEAST_ROUNDS, LEAST_OUTAGE_S, LEAST_JOBS = 200, 480, 50


@summary_of("nodes")
def rounds(figures: Figures) -> str:
    did = (
        f"{figures['rounds']} rounds, {figures['beyond_the_lease']} of them beyond the lease of "
        f"{figures['stop_after_s']:g} s, on {figures['agents']} nodes; "
        f"{figures['jobs_acknowledged']} jobs"
    )
    return f"{did}; {verdict(figures, is_whole=figures['rounds'] >= LEAST_ROUNDS)}"


@summary_of("cuts")
def cuts(figures: Figures) -> str:
    did = (
        f"{figures['rounds']} cuts, {figures['beyond_the_lease']} of them beyond the lease of "
        f"{figures['stop_after_s']:g} s, on {figures['agents']} nodes; "
        f"{figures['jobs_acknowledged']} jobs; workers of fenced nodes ended at least "
        f"{figures['least_margin_s']} s before their deadline; load {figures['load_1m']['p50']}"
    )
    is_whole = figures["rounds"] >= LEAST_CUTS
    return f"{did}; {verdict(figures, 'outlived_lease', is_whole=is_whole)}"


@summary_of("outage")
def outage(figures: Figures) -> str:
    others = f" beside {count} sessions" if (count := figures.get("sessions")) else ""
    did = (
        f"away for {figures['outage_s']:g} s, {figures['jobs']} jobs{others}; nodes heard again "
        f"after {figures['back_s']} s; longest gap between ticks of a worker "
        f"{figures['longest_gap_s']} s"
    )
    is_whole = figures["outage_s"] >= LEAST_OUTAGE_S
    return f"{did}; {verdict(figures, 'nodes_fenced', is_whole=is_whole)}"


@summary_of("upgrade")
def upgrade(figures: Figures) -> str:
    did = (
        f"{figures['upgrades']} upgrades under {figures['jobs']} jobs, p50 "
        f"{figures['upgrade_s']['p50']} s each"
    )
    is_whole = figures["jobs"] >= LEAST_JOBS
    return f"{did}; {verdict(figures, 'nodes_fenced', 'incomplete_outputs', is_whole=is_whole)}"


def verdict(figures: Figures, *more: str, is_whole: bool) -> str:
    """Return each figure that must be 0, and whether the goal is met."""
    since = (name for name in LATER if name in figures)
    counts = {name: figures[name] for name in (*ZEROS, *since, *more)}
    words = ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in counts.items())
    is_met = not any(counts.values()) and figures["verify"] == "ok"
    outcome = ("met" if is_whole else "met by a shorter run") if is_met else "not met"
    return f"{words}, verify **{figures['verify']}**: **{outcome}**"
