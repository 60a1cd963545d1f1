"""Networks on the traces that were left out of their training, beside the Gittins rank."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

from benchmarks.parts.goals import met
from benchmarks.parts.policies import batches as rltune_batches
from benchmarks.parts.policies import continuous
from benchmarks.parts.policies.cells import Cell
from benchmarks.parts.policies.continuous import Replay, side_of
from benchmarks.parts.policies.costs import StopCosts
from benchmarks.parts.policies.rules import GITTINS, NamedRules, oracle
from benchmarks.parts.policies.seed_comparison import COSTS
from benchmarks.parts.rounding import rounded
from shared.process.progress import ReportLine
from simulator.kernel import batches as kernel_batches
from simulator.metrics.bootstrap import gain
from simulator.metrics.policy_jobs import PolicyJobs

NETWORKS = Path(__file__).resolve().parents[3] / "training" / "left_out.json"
EVOLUTION, CONTROL = "evolution", "ppo"
EARNED = 0.1
"""A network earns its place where it waits this much less than the Gittins rank (decision 0027)."""
WAIT = "mean_wait_s"


@dataclass(frozen=True, slots=True)
class LeftOutNetwork:
    """One trained network, with its place in `training/left_out.json`."""

    fold: str
    method: str
    seed: int
    validated: float
    """Geometric mean of its delays over those of the Gittins rank, on the validation windows."""
    figures: dict[str, Any]
    """All that the file says of it, its weights aside."""
    rules: NamedRules

    @property
    def name(self) -> str:
        return f"{self.method} {self.seed}"


@dataclass(frozen=True, slots=True)
class Networks:
    """All networks, and how they were trained."""

    settings: dict[str, Any]
    all: tuple[LeftOutNetwork, ...]

    def fold_of(self, trace: str) -> str:
        """Return the fold that leaves the trace out; "" if none does."""
        folds: dict[str, list[str]] = self.settings["folds"]
        return next((fold for fold, traces in folds.items() if trace in traces), "")

    def of(self, fold: str) -> list[LeftOutNetwork]:
        return [network for network in self.all if network.fold == fold]

    def chosen(self, fold: str, method: str) -> LeftOutNetwork:
        """Return the network of the method that validated best."""
        own = [network for network in self.of(fold) if network.method == method]
        return min(own, key=lambda network: network.validated)

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(network.method for network in self.all))

    def methods_of(self, fold: str) -> list[str]:
        return list(dict.fromkeys(network.method for network in self.of(fold)))

    def plain(self) -> dict[str, Any]:
        return {"settings": self.settings, "networks": [network.figures for network in self.all]}


@dataclass(frozen=True, slots=True)
class LeftOutCell:
    """The mean wait under a network over that under the Gittins rank, less 1.

    The interval is a paired block bootstrap of 95 %, None where one cannot be given.
    """

    trace: str
    fixed_share: float
    method: str
    seed: int
    chosen: bool
    """Whether validation chose it among the seeds of its method."""
    wait_vs_gittins: float
    ci_low: float | None
    ci_high: float | None

    def plain(self) -> dict[str, object]:
        return rounded(self, 4)


def read_networks(path: Path = NETWORKS) -> Networks:
    """Return the committed networks. Raises ValueError where there are none."""
    if not path.is_file():
        raise ValueError(f"{path.name}: not found; `python -m training.left_out` trains networks")
    content = json.loads(path.read_text())
    return Networks(content["settings"], tuple(map(network_of, content["networks"])))


def network_of(figures: dict[str, Any]) -> LeftOutNetwork:
    figures = dict(figures)
    theta = np.array(figures.pop("theta"), np.float64)
    name = f"{figures['method']} {figures['seed']}"
    rules = replace(GITTINS.rules, policy="learned", runtime="history", theta=theta)
    place = (figures["fold"], figures["method"], figures["seed"], figures["validated"])
    return LeftOutNetwork(*place, figures, NamedRules(name, "history", rules))


def compare_networks(
    trace: str, replays: Sequence[Replay], shares: Sequence[float], networks: Networks
) -> list[LeftOutCell]:
    """Return a cell per share of jobs never stopped and network that never saw the trace."""
    cells = []
    own = networks.of(networks.fold_of(trace))
    for share in shares:
        costly = [replace(replay, costs=StopCosts(*COSTS, share)) for replay in replays]
        gittins = side_of([replay.run(GITTINS.rules) for replay in costly])
        for network in own:
            ours = side_of([replay.run(network.rules.rules) for replay in costly])
            chosen = network is networks.chosen(network.fold, network.method)
            cells.append(cell_of(trace, share, network, chosen, (gittins, ours)))
    return cells


def cell_of(
    trace: str,
    share: float,
    network: LeftOutNetwork,
    chosen: bool,
    sides: tuple[PolicyJobs, PolicyJobs],
) -> LeftOutCell:
    """Return the cell of a network, given the jobs under the Gittins rank and under it."""
    gittins, ours = sides
    change = gain(gittins.delay_s, ours.delay_s, gittins.unit)
    ends = [None if end != end else end for end in (change.low, change.high)]
    return LeftOutCell(trace, share, network.method, network.seed, chosen, change.gain, *ends)


def mean_of(cells: Iterable[LeftOutCell]) -> float | None:
    """Return the geometric mean of the ratios, less 1; None without any."""
    ratios = [1.0 + cell.wait_vs_gittins for cell in cells]
    return geometric_mean(ratios) - 1.0 if ratios else None


def chosen_of(cells: Iterable[LeftOutCell], method: str) -> list[LeftOutCell]:
    return [cell for cell in cells if cell.method == method and cell.chosen]


def worst_mean(cells: Sequence[LeftOutCell], method: str) -> float | None:
    """Return the mean over traces and shares of the worst seed of each, less 1."""
    worst: dict[tuple[str, float], LeftOutCell] = {}
    for cell in (cell for cell in cells if cell.method == method):
        place = (cell.trace, cell.fixed_share)
        known = worst.get(place)
        if known is None or cell.wait_vs_gittins > known.wait_vs_gittins:
            worst[place] = cell
    return mean_of(worst.values())


def places_of(cells: Iterable[LeftOutCell]) -> set[tuple[str, float]]:
    return {(cell.trace, cell.fixed_share) for cell in cells}


def earns(cells: Sequence[LeftOutCell], method: str) -> bool:
    """Return whether the method's networks wait enough less to be the default, on every trace."""
    own = chosen_of(cells, method)
    mean = mean_of(own)
    return mean is not None and mean <= -EARNED and places_of(own) == places_of(cells)


def goals_of(cells: Sequence[LeftOutCell], networks: Networks) -> dict[str, str]:
    """Return `met`, `not met` or `not measured`, with the figure, per goal."""
    least = f"waits {EARNED:.0%} less than Gittins on traces left out, geometric mean"
    goals = {}
    for method, words in ((EVOLUTION, "the network"), (CONTROL, "that of PPO, the control")):
        mean, worst = mean_of(chosen_of(cells, method)), worst_mean(cells, method)
        verdict = "not measured"
        if mean is not None and worst is not None:
            traces = len({cell.trace for cell in cells if cell.method == method})
            of = f"{traces} of {len({cell.trace for cell in cells})} traces"
            verdict = f"{met(earns(cells, method))}: {mean:+.1%} ({of}; worst seeds {worst:+.1%})"
        goals[f"{words} {least}"] = verdict
    goals["both methods simulated equally many jobs"] = equal_budgets(networks)
    return goals


def equal_budgets(networks: Networks) -> str:
    """Return the verdict on the simulated jobs of every network of either method."""
    if {EVOLUTION, CONTROL} - set(networks.methods):
        return "not measured"
    budgets = sorted({network.figures["simulated_jobs"] for network in networks.all})
    return f"{met(len(budgets) == 1)}: {', '.join(f'{jobs:,}' for jobs in budgets)}"


def default_policy(cells: Sequence[LeftOutCell], networks: Networks) -> str:
    """Return the name of what ships by the rule of decision 0027."""
    earned = [method for method in networks.methods if earns(cells, method)]
    return f"the network of {earned[0]}" if earned else "the Gittins rank"


def batch_cells(networks: Networks, report_line: ReportLine) -> list[Cell]:
    """Return waits in RLTune's protocol: Gittins, networks that never saw Helios, and RLTune."""
    trace = rltune_batches.TRACE
    fold = networks.fold_of(trace)
    if not continuous.is_shared(trace) or not networks.of(fold):
        return []
    work, _ = continuous.work_named(trace)
    batches = kernel_batches.make_batches(work, 256, None, 0)
    report_line(f"{len(batches)} batches of 256 jobs")
    protocols = {"batches-256-from-empty": list(range(len(batches)))}
    bases = {
        name: [kernel_batches.run_batch(batch, oracle(name).rules) for batch in batches]
        for name in rltune_batches.BATCH_BASES
    }
    ours = [GITTINS, *(networks.chosen(fold, method).rules for method in networks.methods_of(fold))]
    cells = [
        cell
        for policy in ours
        for cell in rltune_batches.cells_of(batches, bases, protocols, policy)
    ]
    cells += rltune_batches.cells_of_rltune(batches, bases, protocols)
    return [cell for cell in cells if cell.metric == WAIT]
