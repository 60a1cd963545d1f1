"""Measurements of the goals of nodes; every finding counts against them."""

from __future__ import annotations

from benchmarks.parts.chaos.figures import Figures, Measurement, measured_by, shortfall

ZEROS = ("double_runs", "lost_jobs", "stopped_by_control_plane", "left_behind", "not_recovered")
"""Figures of every part of nodes that must be 0."""
LATER = ("ticks_after_release",)
"""The same, of runs since they are counted."""
LEAST_CUTS = 100
LEAST_ROUNDS, LEAST_OUTAGE_S, LEAST_JOBS = 200, 480, 50


@measured_by("nodes")
def rounds(figures: Figures) -> Measurement:
    did = (
        f"{figures['rounds']} rounds, {figures['beyond_the_lease']} of them beyond the lease of "
        f"{figures['stop_after_s']:g} s, on {figures['agents']} nodes; "
        f"{figures['jobs_acknowledged']} jobs"
    )
    return judged(did, figures, left_out=shortfall(figures["rounds"], LEAST_ROUNDS, "rounds"))


@measured_by("cuts")
def cuts(figures: Figures) -> Measurement:
    did = (
        f"{figures['rounds']} cuts, {figures['beyond_the_lease']} of them beyond the lease of "
        f"{figures['stop_after_s']:g} s, on {figures['agents']} nodes; "
        f"{figures['jobs_acknowledged']} jobs; workers of fenced nodes ended at least "
        f"{figures['least_margin_s']} s before their deadline; load {figures['load_1m']['p50']}"
    )
    left_out = shortfall(figures["rounds"], LEAST_CUTS, "cuts")
    return judged(did, figures, "outlived_lease", left_out=left_out)


@measured_by("outage")
def outage(figures: Figures) -> Measurement:
    others = f" beside {count} sessions" if (count := figures.get("sessions")) else ""
    did = (
        f"away for {figures['outage_s']:g} s, {figures['jobs']} jobs{others}; nodes heard again "
        f"after {figures['back_s']} s; longest gap between ticks of a worker "
        f"{figures['longest_gap_s']} s"
    )
    left_out = shortfall(figures["outage_s"], LEAST_OUTAGE_S, "s")
    return judged(did, figures, "nodes_fenced", left_out=left_out)


@measured_by("upgrade")
def upgrade(figures: Figures) -> Measurement:
    did = (
        f"{figures['upgrades']} upgrades under {figures['jobs']} jobs, p50 "
        f"{figures['upgrade_s']['p50']} s each"
    )
    left_out = shortfall(figures["jobs"], LEAST_JOBS, "jobs")
    return judged(did, figures, "nodes_fenced", "incomplete_outputs", left_out=left_out)


def judged(did: str, figures: Figures, *more: str, left_out: str) -> Measurement:
    """Add each figure that must be 0; the goal is met where all are, and `verify` agrees."""
    since = (name for name in LATER if name in figures)
    counts = {name: figures[name] for name in (*ZEROS, *since, *more)}
    words = ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in counts.items())
    return Measurement(
        f"{did}; {words}, verify **{figures['verify']}**",
        not any(counts.values()) and figures["verify"] == "ok",
        left_out,
    )
