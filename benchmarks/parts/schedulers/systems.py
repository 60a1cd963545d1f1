"""Each system against its publication, where the artifact's inputs are public."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from benchmarks.parts.command import Json
from benchmarks.parts.schedulers.batch_queue import ANCHOR, NETWORK, batch_queue_runs
from shared.process.progress import ReportLine
from shared.schedulers.registry import scheduler_classes, scheduler_of
from simulator.rounds.artifacts import artifact_folder, trace_file
from simulator.rounds.gavel_jobs import TRACE, GavelDraws, drawn_jobs, gavel_nodes, read_rates
from simulator.rounds.muri_jobs import muri_jobs, muri_nodes, muri_options
from simulator.rounds.pollux_jobs import pollux_nodes, pollux_options, workload
from simulator.rounds.synergy_jobs import synergy_jobs, synergy_nodes, synergy_options
from simulator.rounds.world import RoundsOptions, RoundsWorld

WITHIN = 0.05
"""Part of the published number by which ours may differ."""
POLLUX = "Pollux artifact (OSDI'21), mean JCT of workload"
PUBLISHED_S: dict[str, tuple[float, ...]] = {
    "pollux": (2089, 3323, 2188, 2721, 2674, 2446, 3616, 2952),
    "tiresias": (2474, 5145, 3876, 3280, 3501, 3470, 5480, 5080),
    "optimus": (4087, 6914, 3944, 5968, 5656, 5302, 7291, 6294),
}
"""Mean JCT of the eight workloads, s."""
ALLOX = "Gavel's EXPERIMENTS.md, AlloX, 36 GPUs of each type, mean gap 4,500 s, mean JCT"
ALLOX_S = {42: 59_770.441018, 1234: 64_695.450528, 15: 55_072.401336}
"""Mean JCT of the jobs 4,000 to 4,999 by seed, s."""
ALLOX_JOBS, ALLOX_FROM, ALLOX_TO = 5_200, 4_000, 5_000
ALLOX_GAP_S = 4_500.0
SYNERGY = "Synergy's ae-readme.md, FIFO tuned, 9 jobs an hour, split 20, 70, 10, mean JCT, seed"
SYNERGY_SEED, SYNERGY_S, SYNERGY_JOBS = 42, 21.876600555555555 * 3600, 5_600
"""Mean JCT of the jobs 4,000 to 4,999, s, and jobs enough to keep up the load until they end."""
MURI = "Muri artifact (SIGCOMM'22), simulations with 64 GPUs, mean JCT of"
MURI_S = {
    "srsf": {
        "trace1": 980_140.5699,
        "trace2": 2_213_949.687,
        "trace3": 185_021.8802,
        "trace4": 487_167.1688,
    },
    "tiresias_las": {
        "trace1": 3_330_371.307,
        "trace2": 7_396_368.514,
        "trace3": 347_213.2481,
        "trace4": 1_319_382.936,
    },
    "muri": {
        "trace1": 867_705.7941,
        "trace2": 1_342_400.019,
        "trace3": 85_502.55387,
        "trace4": 365_467.8911,
    },
    "muri_unknown": {
        "trace1": 1_072_009.71,
        "trace2": 2_544_642.351,
        "trace3": 88_686.97313,
        "trace4": 429_174.8679,
    },
}
"""Mean JCT by trace, s."""
OWN_TESTS = "no number with public inputs; conformance tests"
ROOT = Path(__file__).resolve().parents[3]
TESTS = "tests/shared/schedulers/systems/test_{}.py"
DECIMA, STAGE_TESTS = "decima", "tests/simulator/stage_dags"


@dataclass(frozen=True, slots=True)
class AnchoredSystem:
    """`published` and `ours` are means over the same runs, s; None where there are none. Those of
    `rlscheduler` are mean bounded slowdowns, of its network without backfilling.

    `within`: ours is near the published number, or, without one, the conformance tests pass.
    """

    anchor: str
    published: float | None
    ours: float | None
    within: bool
    runs: dict[str, list[float]]
    """[published, ours] by workload or seed."""
    cpu_s: float = 0.0

    def plain(self) -> Json:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AnchorRuns:
    """Runs of each anchor: workloads of Pollux, those that Pollux itself searches, seeds of AlloX,
    and traces of Muri."""

    workloads: Sequence[int]
    searched: Sequence[int]
    seeds: Sequence[int]
    traces: Sequence[str]


def systems(runs: AnchorRuns, report: ReportLine) -> Iterator[tuple[str, AnchoredSystem]]:
    """Yield the comparison of each scheduler, and of Decima, which no pool runs."""
    for name in sorted([*scheduler_classes(), DECIMA]):
        if name == "allox":
            own = allox(runs.seeds)
        elif name == "synergy":
            own = synergy()
        elif name == "rlscheduler":
            own = rlscheduler()
        elif name == DECIMA:
            own = judged_by(STAGE_TESTS)
        elif name in PUBLISHED_S:
            own = of_pollux(name, runs.searched if name == "pollux" else runs.workloads)
        elif name in MURI_S:
            own = of_muri(name, runs.traces)
        else:
            own = by_tests(name)
        figures = f"{own.ours} s, published {own.published} s" if own.runs else own.anchor
        report(f"{name}: {figures}, within {own.within}, CPU {own.cpu_s} s")
        yield name, own


def of_pollux(name: str, numbers: Sequence[int]) -> AnchoredSystem:
    """Run workloads of Pollux' evaluation, numbered from 1."""
    folder = artifact_folder("pollux")
    anchor = f"{POLLUX} {', '.join(map(str, numbers))}"
    if folder is None:
        return AnchoredSystem(f"{anchor}: its inputs are not here", None, None, False, {})
    began_s = time.process_time()
    runs = {}
    for number in numbers:
        jobs = workload(folder / "simulator", number, name)
        world = RoundsWorld(jobs, pollux_nodes(), scheduler_of(name), pollux_options())
        runs[str(number)] = [PUBLISHED_S[name][number - 1], world.run().mean_jct_s()]
    return compared(anchor, runs, began_s)


def allox(seeds: Sequence[int]) -> AnchoredSystem:
    """Run AlloX on the jobs of the released generator."""
    path = trace_file(TRACE)
    anchor = f"{ALLOX}, seed {', '.join(map(str, seeds))}"
    if path is None:
        return AnchoredSystem(f"{anchor}: its inputs are not here", None, None, False, {})
    began_s = time.process_time()
    rates = read_rates(path)
    scored = {f"{number:06d}" for number in range(ALLOX_FROM, ALLOX_TO)}
    runs = {}
    for seed in seeds:
        jobs = list(drawn_jobs(GavelDraws(seed, ALLOX_GAP_S), ALLOX_JOBS, rates))
        options = RoundsOptions(seed=seed, ends_with_work=True)
        world = RoundsWorld(jobs, gavel_nodes((36, 36, 36)), scheduler_of("allox"), options)
        runs[str(seed)] = [ALLOX_S[seed], world.run(scored).mean_jct_s(scored)]
    return compared(anchor, runs, began_s)


def synergy() -> AnchoredSystem:
    """Run Synergy on the jobs of the released simulator."""
    began_s = time.process_time()
    jobs = list(synergy_jobs(SYNERGY_SEED, SYNERGY_JOBS))
    scored = {job.job_id for job in jobs[4_000:5_000]}
    world = RoundsWorld(jobs, synergy_nodes(), scheduler_of("synergy"), synergy_options())
    ours = world.run(scored).mean_jct_s(scored)
    runs = {str(SYNERGY_SEED): [SYNERGY_S, ours]}
    return compared(f"{SYNERGY} {SYNERGY_SEED}", runs, began_s)


def rlscheduler() -> AnchoredSystem:
    """Run the network, and the heuristics beside it, on the sequences of the released evaluation.

    It is within if the network and, without backfilling, each heuristic are.
    """
    began_s = time.process_time()
    runs = batch_queue_runs()
    if runs is None:
        return AnchoredSystem(f"{ANCHOR}: its inputs are not here", None, None, False, {})
    own = compared(ANCHOR, {NETWORK: runs[NETWORK]}, began_s)
    near = [
        abs(pair[1] / pair[0] - 1.0) <= WITHIN for name, pair in runs.items() if "," not in name
    ]
    rounded = {name: [round(value, 1) for value in pair] for name, pair in runs.items()}
    return replace(own, within=all(near), runs=rounded)


def of_muri(name: str, traces: Sequence[str]) -> AnchoredSystem:
    """Run traces of Muri's simulations, with restarts charged as the artifact does."""
    folder = artifact_folder("muri")
    anchor = f"{MURI} {', '.join(traces)}"
    if folder is None:
        return AnchoredSystem(f"{anchor}: its inputs are not here", None, None, False, {})
    began_s = time.process_time()
    runs = {}
    for trace in traces:
        jobs = muri_jobs(folder / "simulator", trace)
        world = RoundsWorld(jobs, muri_nodes(), scheduler_of(name), muri_options())
        runs[trace] = [MURI_S[name][trace], world.run().mean_jct_s()]
    return compared(anchor, runs, began_s)


def by_tests(name: str) -> AnchoredSystem:
    """Run the tests of the file of a system without a public number."""
    return judged_by(TESTS.format(scheduler_classes()[name].__module__.rpartition(".")[2]))


def judged_by(path: str) -> AnchoredSystem:
    """Run the tests of a file or folder, which decide in place of a number."""
    if not (ROOT / path).exists():
        return AnchoredSystem(f"{OWN_TESTS} `{path}` are not here", None, None, False, {})
    return AnchoredSystem(f"{OWN_TESTS} `{path}`", None, None, passes(path), {})


@lru_cache(maxsize=64)
def passes(path: str) -> bool:
    """Return whether the tests of a file or folder pass, in a process of their own."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", path]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def compared(anchor: str, runs: dict[str, list[float]], began_s: float) -> AnchoredSystem:
    published = sum(pair[0] for pair in runs.values()) / len(runs)
    ours = sum(pair[1] for pair in runs.values()) / len(runs)
    rounded = {name: [round(value, 1) for value in pair] for name, pair in runs.items()}
    within = abs(ours / published - 1.0) <= WITHIN
    cpu_s = round(time.process_time() - began_s, 1)
    return AnchoredSystem(anchor, round(published, 1), round(ours, 1), within, rounded, cpu_s)
