"""The goals of `reliability.md`, section 4, each beside what was measured and by what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

NOT_MEASURED = "not measured"
PYTEST = "pytest "


@dataclass(frozen=True, slots=True)
class Goal:
    """`measured` is given all results; an empty answer means that nobody has measured it."""

    name: str
    test: str
    promise: str
    measured: Callable[[Json, Json], str]
    by: str
    """The part or the test file that measures it; a part's command is known from its run."""


def row(goal: Goal, result: Json, fuzz: Json) -> tuple[str, str, str, str, str]:
    """Name, test, promise, figures, command."""
    figures = goal.measured(result, fuzz)
    by = command(goal.by, result) if figures else f"`{goal.by}`" if " " in goal.by else ""
    return goal.name, goal.test, goal.promise, figures or NOT_MEASURED, by


def command(by: str, result: Json) -> str:
    found = result["parts"].get(by)
    if found is None:
        return f"`{by}`"
    run = result["runs"].get(found.get("run"), {})
    return f"`{run.get('command', by)}`"


def part(result: Json, name: str) -> Json:
    """Its figures, empty where it was not run; `ended` is what verify said of that run."""
    found = result["parts"].get(name, {})
    if "skipped" in found:
        return {}
    ended = result["runs"].get(found.get("run"), {}).get("end")
    return {**found, "ended": ended} if found else {}


def verdict(found: Json) -> str:
    end = found["ended"]
    if end is None:
        return "cut short before the end was judged"
    lost = end["jobs_acknowledged"] - end["jobs_ended"]
    return (
        f"{end['jobs_acknowledged']} jobs acknowledged, {lost} without an end, "
        f"verify **{end['verify']}** ({len(end['violations'])} violations)"
    )


def spread(found: Json) -> str:
    return f"p50 {found['p50']} s, p99 {found['p99']} s, max {found['max']} s of {found['count']}"


def g1(result: Json, _: Json) -> str:
    if not (found := part(result, "kills")):
        return ""
    return (
        f"{found['kills']} kills, at least {found['fewest_per_service']} of each service, "
        f"up to {found['at_once']} at once; {verdict(found)}"
    )


def g2(result: Json, _: Json) -> str:
    found = part(result, "kills")
    if not found or not found["ended"]:
        return ""
    rule = "read models equal the fold"
    wrong = [each for each in found["ended"]["violations"] if each.startswith(rule)]
    judged = rule in found["ended"]["rules"]
    return f"{'different' if wrong else 'equal'}, every row and field" if judged else ""


def g3(result: Json, _: Json) -> str:
    if not (found := part(result, "recovery")):
        return ""
    load = result["runs"].get(found["run"], {}).get("load_1m", "?")
    return (
        f"{spread(found['recovery_s'])} kills; of deciders "
        f"{spread(found['deciders_recovery_s'])}; load {load} at the end"
    )


def g4(result: Json, _: Json) -> str:
    found = part(result, "broker")
    return found and f"{spread(found['resume_s'])} kills; {verdict(found)}" or ""


def g5(result: Json, _: Json) -> str:
    found = part(result, "postgres")
    return found and f"{spread(found['resume_s'])} kills; {verdict(found)}" or ""


def g6(result: Json, _: Json) -> str:
    if not (found := part(result, "zombies")):
        return ""
    return (
        f"{found['zombies']} pauses, {found['paused_beyond_the_session']} of them beyond the "
        f"session; {found['records_ignored']} records ignored; both lived: {found['both_lived']}; "
        f"{verdict(found)}"
    )


def g7(result: Json, _: Json) -> str:
    if not (found := part(result, "flood")):
        return ""
    return (
        f"{found['malformed']} sent, {found['dead_letters']} dead letters with a reason, all in "
        f"the read models after {found.get('all_in_read_models_after_s', '?')} s; good ones behind "
        f"them waited {spread(found['good_ones_delayed_s'])}; {verdict(found)}"
    )


def g8(result: Json, _: Json) -> str:
    found = result["simulation"]
    if not found:
        return ""
    return f"{found['seeds'] - len(found['wrong'])} of {found['seeds']} stories end as a calm one"


def g9(result: Json, _: Json) -> str:
    if not (found := part(result, "slow")):
        return ""
    return (
        f"stopped for {found['paused_s']} s: caught up in {found['catch_up_s']} s "
        f"({found['catch_up_over_live_rate']} times the live rate), largest growth "
        f"{found['largest_growth_mib']} MiB; {verdict(found)}"
    )


def g10(result: Json, _: Json) -> str:
    told = []
    for under in ("kafka", "postgres"):
        if found := part(result, f"disk_{under}"):
            first = found["first_503_after_s"]
            refused = "nothing is refused" if first is None else f"first 503 after {first} s"
            told.append(
                f"{under}: {refused}, good again {found['good_again_after_s']} s after room was "
                f"made, {found['jobs_acknowledged']} jobs acknowledged, verify "
                f"**{found['verify']}**"
            )
    return "; ".join(told)


def g11(result: Json, _: Json) -> str:
    found = result["simulation"]
    return found and f"{found['seeds']} seeds, {len(found['wrong'])} of them wrong" or ""


def g12(result: Json, _: Json) -> str:
    found = result["simulation"].get("sabotage", {})
    return found and f"{sum(found.values())} of {len(found)} sabotages turn the judge red" or ""


def of_tests(*names: str) -> Callable[[Json, Json], str]:
    """What pytest said of these test files or functions' modules."""

    def measured(result: Json, _: Json) -> str:
        told = [
            f"{module.rpartition('.')[2]}: {_tests(found)}"
            for module, found in result["checks"].items()
            if module in names
        ]
        return "; ".join(told)

    return measured


def _tests(found: Json) -> str:
    passed = found["tests"] - found["failed"] - found["skipped"]
    return f"{passed} of {found['tests']} passed, {found['skipped']} skipped"


def g14(result: Json, _: Json) -> str:
    found = part(result, "soak")
    if not found or found["worst_growth_mib_per_h"] is None:
        return ""
    name = found["worst_service"]
    return (
        f"{found['minutes']} min at {found['per_s']} jobs/s: over the second half most growth is "
        f"{name}'s, {found['worst_growth_mib_per_h']} MiB/h ({found['mib_at_first'][name]} MiB at "
        f"first, {found['mib_at_last'][name]} at last); lines of errors: "
        f"{found.get('lines_of_errors', '?')}; restarted: {len(found.get('restarted', []))}; "
        f"{verdict(found)}"
    )


def g15(result: Json, _: Json) -> str:
    if not (found := part(result, "stall")):
        return ""
    return (
        f"p99 below {found['p99_below_s']} s, longest below {found['longest_below_s']} s, of the "
        f"worst of {found['services']} services over {found['seconds']} s of load"
    )


def g18(_: Json, fuzz: Json) -> str:
    if not fuzz:
        return ""
    runs = sum(each["runs"] for each in fuzz["bytes"].values())
    return f"{runs:,} runs over {len(fuzz['bytes'])} decoders; all well: {fuzz['ok']}"


GOALS = (
    Goal(
        "G1",
        "100 SIGKILLs at random over each service, 100,000 jobs",
        "0 lost, 0 doubly allocated, one end each",
        g1,
        "kills",
    ),
    Goal("G2", "read models after G1 against a fold from scratch", "equal", g2, "kills"),
    Goal(
        "G3",
        "SIGKILL of a service to its first new decision",
        "p50 < 2 s, p99 < 5 s (quiet machine, 2 cores)",
        g3,
        "recovery",
    ),
    Goal(
        "G4",
        "SIGKILL of the broker",
        "0 lost, decisions < 15 s after its port is open",
        g4,
        "broker",
    ),
    Goal("G5", "SIGQUIT of Postgres", "0 lost, < 10 s after it answers", g5, "postgres"),
    Goal(
        "G6",
        "a second copy of placement, SIGSTOP then SIGCONT, 100 times",
        "0 stale records accepted, the zombie goes on",
        g6,
        "zombies",
    ),
    Goal(
        "G7",
        "10^6 malformed records end to end",
        "0 crashes, each a dead letter with a reason, good ones behind delayed < 5 s",
        g7,
        "flood",
    ),
    Goal(
        "G8",
        "every input delivered 1 to 5 times, the repeats late",
        "the same end",
        g8,
        "python -m tests.chaos",
    ),
    Goal(
        "G9",
        "the projector stopped for 10 min under load",
        "no loss, growth < 50 MiB, catches up > 5 times as fast",
        g9,
        "slow",
    ),
    Goal(
        "G10",
        "disk full: broker, Postgres",
        "503 < 5 s, nothing acknowledged is lost",
        g10,
        "disk_kafka",
    ),
    Goal(
        "G11",
        "deterministic simulation",
        "0 invariants broken in 10^5 seeds a night",
        g11,
        "python -m tests.chaos",
    ),
    Goal("G12", "sabotage, a rule at a time", "the judge finds each", g12, "python -m tests.chaos"),
    Goal(
        "G13",
        "golden ledgers; upgrade and rollback under traffic",
        "state equal, 0 lost",
        of_tests("tests.replay.test_replay", "tests.operations.test_upgrade"),
        PYTEST + "tests/replay tests/operations/test_upgrade.py",
    ),
    Goal("G14", "soak: 8 h at 20 jobs/s", "memory < 1 MiB/h, 0 errors", g14, "soak"),
    Goal("G15", "stall of a service's loop", "p99 < 50 ms, max < 250 ms", g15, "stall"),
    Goal(
        "G17",
        "ACL matrix on the real broker",
        "every cell as the table says",
        of_tests("tests.infra.security.test_kafka_security"),
        PYTEST + "tests/infra/security/test_kafka_security.py",
    ),
    Goal("G18", "fuzzing of the API and of decoders", "0 uncaught, 0 x 5xx", g18, "make fuzz"),
    Goal(
        "G19",
        "trace completeness",
        "> 99.9 % of placed jobs have all five spans",
        of_tests("tests.e2e.test_observed"),
        PYTEST + "tests/e2e/test_observed.py",
    ),
)
