"""Measurements by simulation, by tests and by fuzzing, each judged by its target."""

from __future__ import annotations

from benchmarks.parts.chaos.figures import Figures, Measured, Measurement, shortfall, together

SEEDS = 100_000
BROKER_FAULTS, MOST_PAUSE_S = 20, 15.0
THREE_BROKERS_FILE = "tests/chaos/test_three_brokers.py"
THREE_BROKERS = "tests.chaos.test_three_brokers"


def redelivery(result: Figures, _: Figures) -> Measurement | None:
    if not (simulation := result["simulation"]):
        return None
    wrong = len(simulation["wrong"])
    return Measurement(
        f"{simulation['seeds'] - wrong} of {simulation['seeds']} runs end in the state of the run "
        "without faults",
        wrong == 0,
    )


def simulation_seeds(result: Figures, _: Figures) -> Measurement | None:
    if not (simulation := result["simulation"]):
        return None
    wrong = len(simulation["wrong"])
    return Measurement(
        f"{simulation['seeds']} seeds, {wrong} with violations",
        wrong == 0,
        shortfall(simulation["seeds"], SEEDS, "seeds"),
    )


def sabotage(result: Figures, _: Figures) -> Measurement | None:
    if not (removed := result["simulation"].get("sabotage", {})):
        return None
    return Measurement(
        f"{sum(removed.values())} of {len(removed)} removed rules detected", all(removed.values())
    )


def tests(*modules: str) -> Measured:
    """Return the measurement of these test files, from the JUnit report."""

    def measurement(result: Figures, _: Figures) -> Measurement | None:
        checks = {name: result["checks"][name] for name in modules if name in result["checks"]}
        if not (ran := [*checks.values()]):
            return None
        return Measurement(
            "; ".join(f"{_file(name)}: {_passed(counts)}" for name, counts in checks.items()),
            all(counts["tests"] > counts["skipped"] and not counts["failed"] for counts in ran),
            together(
                *(f"{_file(name)}" for name in modules if name not in checks),
                *(
                    f"{counts['skipped']} of {_file(name)}"
                    for name, counts in checks.items()
                    if counts["skipped"]
                ),
            ),
        )

    return measurement


def three_brokers(result: Figures, fuzz: Figures) -> Measurement | None:
    """Judge the tests on three brokers, and what the one under load has recorded of its faults."""
    passed = tests(THREE_BROKERS)(result, fuzz)
    if passed is None:
        return None
    recorded = result["checks"][THREE_BROKERS].get("recorded", {})
    if not recorded:
        return Measurement(passed.summary, False, together(passed.left_out, "faults under load"))
    faults, pause_s = int(recorded["faults"]), float(recorded["longest_pause_s"])
    return Measurement(
        f"{passed.summary}; {faults} faults, {recorded['acknowledged']} commands acknowledged, "
        f"at most {pause_s:g} s without an acknowledgement",
        passed.is_met and pause_s < MOST_PAUSE_S,
        together(passed.left_out, shortfall(faults, BROKER_FAULTS, "faults")),
    )


def _file(module: str) -> str:
    return module.rpartition(".")[2]


def _passed(counts: Figures) -> str:
    passed = counts["tests"] - counts["failed"] - counts["skipped"]
    return f"{passed} of {counts['tests']} passed, {counts['skipped']} skipped"


def fuzzing(_: Figures, fuzz: Figures) -> Measurement | None:
    if not fuzz:
        return None
    runs = sum(decoder["runs"] for decoder in fuzz["bytes"].values())
    return Measurement(
        f"{runs:,} runs over {len(fuzz['bytes'])} decoders; all passed: {fuzz['ok']}",
        bool(fuzz["ok"]),
    )
