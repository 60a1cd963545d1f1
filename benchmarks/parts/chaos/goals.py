"""The reliability goals of Berth, each with its measurement and the command of it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.parts.chaos import check_figures, node_figures, other_figures, service_figures
from benchmarks.parts.chaos.figures import Figures, Measured

NOT_MEASURED = "not measured"
PYTEST = "pytest "
GUARDED = ("administration", "authentication", "listeners", "records", "rights")
"""Test files of the broker's access rules, without their `test_`."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One reliability goal: a test, its target and the figures that were measured."""

    name: str
    test: str
    target: str
    measured: Measured
    """Judges all results and those of fuzzing; None if the goal was not measured."""
    source: str
    """The part that measures it, whose run has the command, or a command."""


def row(goal: Goal, result: Figures, fuzz: Figures) -> tuple[str, ...]:
    """Return name, test, target, figures, result, what was not exercised, and the command."""
    measurement = goal.measured(result, fuzz)
    if measurement is None:
        source = f"`{goal.source}`" if " " in goal.source else ""
        return goal.name, goal.test, goal.target, "", NOT_MEASURED, "all of it", source
    outcome = "met" if measurement.is_met else "**not met**"
    return (
        goal.name,
        goal.test,
        goal.target,
        measurement.summary,
        outcome,
        measurement.left_out,
        measurement.by or command(goal.source, result),
    )


def command(source: str, result: Figures) -> str:
    """Return the command of the run that measured a part; other sources are commands."""
    part = result["parts"].get(source)
    if part is None:
        return f"`{source}`"
    run = result["runs"].get(part.get("run"), {})
    return f"`{run.get('command', source)}`"


GOALS = (
    Goal(
        "G1",
        "100 SIGKILLs of each service at random times, 100,000 jobs",
        "0 lost, 0 allocated twice, each ends once",
        service_figures.kills,
        "kills",
    ),
    Goal(
        "G2",
        "read models after G1 against a fold from the start of the ledgers",
        "equal",
        service_figures.read_models,
        "kills",
    ),
    Goal(
        "G3",
        "SIGKILL of a service to its first new decision",
        "p50 < 2 s, p99 < 5 s (quiet machine, 2 cores)",
        service_figures.recovery,
        "recovery",
    ),
    Goal(
        "G4",
        "SIGKILL of the broker, 20 times",
        "0 lost, decisions < 15 s after its port is open",
        service_figures.broker,
        "broker",
    ),
    Goal(
        "G5",
        "SIGQUIT of Postgres",
        "0 lost, < 10 s after it answers",
        service_figures.postgres,
        "postgres",
    ),
    Goal(
        "G6",
        "a second copy of placement, SIGSTOP then SIGCONT, 100 times",
        "0 stale records accepted, both keep running",
        service_figures.zombies,
        "zombies",
    ),
    Goal(
        "G7",
        "10^6 malformed records end to end, in `commands` itself, where only services write",
        "0 crashes, each a dead letter with a reason, valid jobs behind delayed < 5 s",
        service_figures.flood,
        "flood",
    ),
    Goal(
        "G8",
        "every input delivered 1 to 5 times, repeats late",
        "the same final state",
        check_figures.redelivery,
        "python -m tests.chaos",
    ),
    Goal(
        "G9",
        "projector paused for 10 min under load",
        "no loss, growth < 50 MiB, catches up > 5 times as fast",
        service_figures.slow,
        "slow",
    ),
    Goal(
        "G10",
        "disk full: broker, Postgres",
        "503 < 5 s, nothing acknowledged is lost",
        service_figures.full_disks,
        "disk_kafka",
    ),
    Goal(
        "G11",
        "deterministic simulation",
        "0 invariants broken in 10^5 seeds a night",
        check_figures.simulation_seeds,
        "python -m tests.chaos",
    ),
    Goal(
        "G12",
        "one rule of the protocol removed at a time",
        "each removal is detected",
        check_figures.sabotage,
        "python -m tests.chaos",
    ),
    Goal(
        "G13",
        "golden ledgers; upgrade and rollback under traffic",
        "state equal, 0 lost",
        check_figures.tests("tests.replay.test_replay", "tests.operations.test_upgrade"),
        PYTEST + "tests/replay tests/operations/test_upgrade.py",
    ),
    Goal("G14", "soak: 8 h at 20 jobs/s", "memory < 1 MiB/h, 0 errors", other_figures.soak, "soak"),
    Goal(
        "G15",
        "stall of a service's loop",
        "p99 < 50 ms, max < 250 ms",
        service_figures.stall,
        "stall",
    ),
    Goal(
        "G17",
        "ACL matrix on the real broker",
        "every cell as specified",
        check_figures.tests(*(f"tests.infra.security.on_kafka.test_{name}" for name in GUARDED)),
        PYTEST + "tests/infra/security/on_kafka",
    ),
    Goal(
        "G18",
        "fuzzing of the API and of decoders",
        "0 uncaught, 0 x 5xx",
        check_figures.fuzzing,
        "make fuzz",
    ),
    Goal(
        "G19",
        "trace completeness",
        "> 99.9 % of placed jobs have all five spans",
        check_figures.tests("tests.e2e.test_observed"),
        PYTEST + "tests/e2e/test_observed.py",
    ),
    Goal(
        "G20",
        "nodes: SIGKILL, SIGSTOP and cuts of agents, links, steps, executor, broker and services, "
        "below and beyond the lease, 200 rounds",
        "0 double runs, 0 lost jobs, 0 workers stopped by a shorter outage, nothing left behind",
        node_figures.rounds,
        "nodes",
    ),
    Goal(
        "G21",
        "the whole control plane is killed and away for 480 s",
        "no worker on a node notices",
        node_figures.outage,
        "outage",
    ),
    Goal(
        "G22",
        "the agent is upgraded while 50 jobs run on its node",
        "no worker notices, every output is complete",
        node_figures.upgrade,
        "upgrade",
    ),
    Goal(
        "G23",
        "nodes on hosts of their own: the network cuts each direction and both for 0.5, 0.9, 1.1 "
        "and 2 leases, 100 rounds",
        "as G20; no worker ticks after its GPUs were released, no incarnation outlives its lease",
        node_figures.cuts,
        "cuts",
    ),
    Goal(
        "G24",
        "three SIGKILLs of services at once, under load, to the first new decision",
        "p99 < 10 s",
        service_figures.kills_at_once,
        "kills",
    ),
    Goal(
        "G25",
        "10^6 malformed records of one tenant, in its own topic",
        "jobs of another tenant delayed < 5 s",
        other_figures.tenants_flood,
        "berth bench flood",
    ),
    Goal(
        "G26",
        "three brokers under load: 20 times one is killed or loses its disk, or leaders move",
        "0 lost, each command decided once, acknowledged again < 15 s",
        check_figures.three_brokers,
        PYTEST + check_figures.THREE_BROKERS_FILE,
    ),
)
