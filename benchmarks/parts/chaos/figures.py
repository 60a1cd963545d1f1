"""Sentences that sum up the figures of each part of a chaos run; empty where not measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from shared.verify.readmodels import READ_MODELS_RULE

Figures = Mapping[str, Any]
Sentence = Callable[[Figures, Figures], str]
"""(results, results of fuzzing) -> one sentence, empty where nothing was measured."""


def part(result: Figures, name: str) -> Figures:
    """Return the figures of a part, empty if it was not run; `ended` is the verdict of its run."""
    figures = result["parts"].get(name, {})
    if "skipped" in figures:
        return {}
    ended = result["runs"].get(figures.get("run"), {}).get("end")
    return {**figures, "ended": ended} if figures else {}


def summary_of(name: str) -> Callable[[Callable[[Figures], str]], Sentence]:
    """Turn a summary of the figures of the part `name` into one of all results."""

    def decorate(summarize: Callable[[Figures], str]) -> Sentence:
        @wraps(summarize)
        def sentence(result: Figures, _: Figures) -> str:
            figures = part(result, name)
            return summarize(figures) if figures else ""

        return sentence

    return decorate


def verdict(figures: Figures) -> str:
    end = figures["ended"]
    if end is None:
        return "cut short before the final check"
    lost = end["jobs_acknowledged"] - end["jobs_ended"]
    return (
        f"{end['jobs_acknowledged']} jobs acknowledged, {lost} without an end, "
        f"verify **{end['verify']}** ({len(end['violations'])} violations)"
    )


def spread(times: Figures) -> str:
    return f"p50 {times['p50']} s, p99 {times['p99']} s, max {times['max']} s of {times['count']}"


@summary_of("kills")
def kills(figures: Figures) -> str:
    return (
        f"{figures['kills']} kills, at least {figures['fewest_per_service']} of each service, "
        f"up to {figures['at_once']} at once; {verdict(figures)}"
    )


@summary_of("kills")
def read_models(figures: Figures) -> str:
    end = figures["ended"]
    if not end or READ_MODELS_RULE not in end["rules"]:
        return ""
    is_violated = any(violation.startswith(READ_MODELS_RULE) for violation in end["violations"])
    return f"{'different' if is_violated else 'equal'}, every row and field"


def recovery(result: Figures, _: Figures) -> str:
    if not (figures := part(result, "recovery")):
        return ""
    load = result["runs"].get(figures["run"], {}).get("load_1m", "?")
    return (
        f"{spread(figures['recovery_s'])} kills; of deciders "
        f"{spread(figures['deciders_recovery_s'])}; load {load} at the end"
    )


def resume(figures: Figures) -> str:
    return f"{spread(figures['resume_s'])} kills; {verdict(figures)}"


broker = summary_of("broker")(resume)
postgres = summary_of("postgres")(resume)


@summary_of("zombies")
def zombies(figures: Figures) -> str:
    return (
        f"{figures['zombies']} pauses, {figures['paused_beyond_the_session']} of them beyond the "
        f"session; {figures['records_ignored']} records ignored; both still running: "
        f"{figures['both_lived']}; {verdict(figures)}"
    )


@summary_of("flood")
def flood(figures: Figures) -> str:
    return (
        f"{figures['malformed']} sent, {figures['dead_letters']} dead letters with a reason, all "
        f"in the read models after {figures.get('all_in_read_models_after_s', '?')} s; valid jobs "
        f"behind them waited {spread(figures['good_ones_delayed_s'])}; {verdict(figures)}"
    )


def redelivery(result: Figures, _: Figures) -> str:
    simulation = result["simulation"]
    if not simulation:
        return ""
    equal = simulation["seeds"] - len(simulation["wrong"])
    return f"{equal} of {simulation['seeds']} runs end in the state of the run without faults"


@summary_of("slow")
def slow(figures: Figures) -> str:
    return (
        f"stopped for {figures['paused_s']} s: caught up in {figures['catch_up_s']} s "
        f"({figures['catch_up_over_live_rate']} times the live rate), largest growth "
        f"{figures['largest_growth_mib']} MiB; {verdict(figures)}"
    )


def full_disks(result: Figures, _: Figures) -> str:
    sentences = []
    for server in ("kafka", "postgres"):
        if figures := part(result, f"disk_{server}"):
            first = figures["first_503_after_s"]
            refusal = "nothing is refused" if first is None else f"first 503 after {first} s"
            sentences.append(
                f"{server}: {refusal}, recovered {figures['good_again_after_s']} s after space "
                f"was freed, {figures['jobs_acknowledged']} jobs acknowledged, verify "
                f"**{figures['verify']}**"
            )
    return "; ".join(sentences)


def simulation_seeds(result: Figures, _: Figures) -> str:
    simulation = result["simulation"]
    if not simulation:
        return ""
    return f"{simulation['seeds']} seeds, {len(simulation['wrong'])} with violations"


def sabotage(result: Figures, _: Figures) -> str:
    removed = result["simulation"].get("sabotage", {})
    return f"{sum(removed.values())} of {len(removed)} removed rules detected" if removed else ""


def tests(*modules: str) -> Sentence:
    """Return the sentence of these test files, from the JUnit report."""

    def sentence(result: Figures, _: Figures) -> str:
        return "; ".join(
            f"{module.rpartition('.')[2]}: {_passed(counts)}"
            for module, counts in result["checks"].items()
            if module in modules
        )

    return sentence


def _passed(counts: Figures) -> str:
    passed = counts["tests"] - counts["failed"] - counts["skipped"]
    return f"{passed} of {counts['tests']} passed, {counts['skipped']} skipped"


@summary_of("soak")
def soak(figures: Figures) -> str:
    if figures["worst_growth_mib_per_h"] is None:
        return ""
    name = figures["worst_service"]
    return (
        f"{figures['minutes']} min at {figures['per_s']} jobs/s: largest growth over the second "
        f"half {figures['worst_growth_mib_per_h']} MiB/h, of {name} "
        f"({figures['mib_at_first'][name]} MiB at first, {figures['mib_at_last'][name]} at last); "
        f"error lines: {figures.get('lines_of_errors', '?')}; "
        f"restarted: {len(figures.get('restarted', []))}; {verdict(figures)}"
    )


@summary_of("stall")
def stall(figures: Figures) -> str:
    return (
        f"p99 below {figures['p99_below_s']} s, longest below {figures['longest_below_s']} s, of "
        f"the worst of {figures['services']} services over {figures['seconds']} s of load"
    )


def fuzzing(_: Figures, fuzz: Figures) -> str:
    if not fuzz:
        return ""
    runs = sum(decoder["runs"] for decoder in fuzz["bytes"].values())
    return f"{runs:,} runs over {len(fuzz['bytes'])} decoders; all passed: {fuzz['ok']}"
