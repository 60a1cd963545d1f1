"""Measurements of the goals of services and servers, each judged by its target."""

from __future__ import annotations

from benchmarks.parts.chaos.figures import (
    Figures,
    Measurement,
    lost_nothing,
    measured_by,
    part,
    shortfall,
    spread,
    together,
    verdict,
)
from shared.verify.readmodels import READ_MODELS_RULE

KILLS, KILLED_JOBS, AT_ONCE = 100, 100_000, 3
BROKER_KILLS = 20
MALFORMED = 1_000_000
AWAY_S = 600.0
SOAK_MINUTES = 480.0
QUIET_LOAD = 1.0


@measured_by("kills")
def kills(figures: Figures) -> Measurement:
    jobs = figures["ended"]["jobs_acknowledged"] if figures["ended"] else 0
    return Measurement(
        f"{figures['kills']} kills, at least {figures['fewest_per_service']} of each service, "
        f"up to {figures['at_once']} at once; {verdict(figures)}",
        lost_nothing(figures),
        together(
            shortfall(figures["fewest_per_service"], KILLS, "kills of a service"),
            shortfall(jobs, KILLED_JOBS, "jobs"),
        ),
    )


@measured_by("kills")
def read_models(figures: Figures) -> Measurement | None:
    end = figures["ended"]
    if not end or READ_MODELS_RULE not in end["rules"]:
        return None
    is_violated = any(violation.startswith(READ_MODELS_RULE) for violation in end["violations"])
    words = "different" if is_violated else "equal"
    return Measurement(f"{words}, every row and field", not is_violated)


@measured_by("kills")
def kills_at_once(figures: Figures) -> Measurement:
    times = figures["recovery_s"]
    return Measurement(
        f"{spread(times)} kills, up to {figures['at_once']} at once; load {_load(figures)}",
        times["p99"] < 10,
        shortfall(figures["at_once"], AT_ONCE, "kills at once"),
    )


@measured_by("recovery")
def recovery(figures: Figures) -> Measurement:
    times, load = figures["recovery_s"], figures["load"]
    return Measurement(
        f"{spread(times)} kills; of deciders {spread(figures['deciders_recovery_s'])}; "
        f"load {_load(figures)} at the end",
        times["p50"] < 2 and times["p99"] < 5,
        "a quiet machine" if load is None or load > QUIET_LOAD else "",
    )


@measured_by("broker")
def broker(figures: Figures) -> Measurement:
    return Measurement(
        f"{spread(figures['resume_s'])} kills; {verdict(figures)}",
        lost_nothing(figures) and figures["resume_s"]["max"] < 15,
        shortfall(figures["kills"], BROKER_KILLS, "kills"),
    )


@measured_by("postgres")
def postgres(figures: Figures) -> Measurement:
    return Measurement(
        f"{spread(figures['resume_s'])} kills; {verdict(figures)}",
        lost_nothing(figures) and figures["resume_s"]["max"] < 10,
    )


@measured_by("zombies")
def zombies(figures: Figures) -> Measurement:
    pauses, beyond = figures["zombies"], figures["paused_beyond_the_session"]
    return Measurement(
        f"{pauses} pauses, {beyond} of them beyond the session; {figures['records_ignored']} "
        f"records ignored; both still running: {figures['both_lived']}; {verdict(figures)}",
        bool(figures["both_lived"]) and lost_nothing(figures),
        together(
            shortfall(pauses, KILLS, "pauses"), "" if beyond else "a pause beyond the session"
        ),
    )


@measured_by("flood")
def flood(figures: Figures) -> Measurement:
    sent, dead = figures["malformed"], figures["dead_letters"]
    return Measurement(
        f"{sent} sent, {dead} dead letters with a reason, all in the read models after "
        f"{figures.get('all_in_read_models_after_s', '?')} s; valid jobs behind them waited "
        f"{spread(figures['good_ones_delayed_s'])}; {verdict(figures)}",
        sent == dead and figures["good_ones_delayed_s"]["max"] < 5 and lost_nothing(figures),
        shortfall(sent, MALFORMED, "records"),
    )


@measured_by("slow")
def slow(figures: Figures) -> Measurement:
    ratio, growth_mib = figures["catch_up_over_live_rate"], figures["largest_growth_mib"]
    return Measurement(
        f"stopped for {figures['paused_s']} s: caught up in {figures['catch_up_s']} s ({ratio} "
        f"times the live rate), largest growth {growth_mib} MiB; {verdict(figures)}",
        ratio > 5 and growth_mib < 50 and lost_nothing(figures),
        shortfall(figures["paused_s"], AWAY_S, "s"),
    )


def full_disks(result: Figures, _: Figures) -> Measurement | None:
    sentences, is_met, has_refused, left_out = [], True, False, []
    for server in ("kafka", "postgres"):
        if not (figures := part(result, f"disk_{server}")):
            left_out.append(f"{server}'s disk")
            continue
        first = figures["first_503_after_s"]
        refusal = "nothing is refused" if first is None else f"first 503 after {first} s"
        sentences.append(
            f"{server}: {refusal}, recovered {figures['good_again_after_s']} s after space was "
            f"freed, {figures['jobs_acknowledged']} jobs acknowledged, verify "
            f"**{figures['verify']}**"
        )
        is_met &= figures["verify"] == "ok" and figures["all_ended"] and (first or 0) < 5
        has_refused |= first is not None
        if first is None:
            left_out.append(f"{server} refused nothing within {figures['full_s']:g} s")
    if not sentences:
        return None
    return Measurement("; ".join(sentences), is_met and has_refused, together(*left_out))


@measured_by("soak")
def soak(figures: Figures) -> Measurement | None:
    growth = figures["worst_growth_mib_per_h"]
    if growth is None:
        return None
    name, errors = figures["worst_service"], figures.get("lines_of_errors", "?")
    return Measurement(
        f"{figures['minutes']} min at {figures['per_s']} jobs/s: largest growth over the second "
        f"half {growth} MiB/h, of {name} ({figures['mib_at_first'][name]} MiB at first, "
        f"{figures['mib_at_last'][name]} at last); error lines: {errors}; "
        f"restarted: {len(figures.get('restarted', []))}; {verdict(figures)}",
        growth < 1 and errors == 0 and lost_nothing(figures),
        shortfall(figures["minutes"], SOAK_MINUTES, "min"),
    )


@measured_by("stall")
def stall(figures: Figures) -> Measurement:
    return Measurement(
        f"p99 below {figures['p99_below_s']} s, longest below {figures['longest_below_s']} s, of "
        f"the worst of {figures['services']} services over {figures['seconds']} s of load",
        figures["p99_below_s"] <= 0.05 and figures["longest_below_s"] <= 0.25,
    )


def _load(figures: Figures) -> str:
    return "?" if figures["load"] is None else str(figures["load"])
