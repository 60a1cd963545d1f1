"""The variables of a round's model, shared by the parts that add constraints to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ortools.sat.python import cp_model

from services.placement.core.solver.instance import GangRequest, Instance, NodeClass
from services.placement.core.solver.objective import NodeRemainder
from services.placement.core.solver.places import NodeBundle

Var = Any
"""A variable or a linear expression of CP-SAT; the library has no types."""
Sum = list[tuple[Var, int]]


@dataclass(slots=True)
class GangVariables:
    """The variables of one gang that would start (or move) now."""

    request: GangRequest
    begins: Var
    workers: dict[int, Var] = field(default_factory=dict)
    """By place: number of workers; in a bundle number of nodes."""
    per: dict[int, int] = field(default_factory=dict)
    """By place: workers per unit of that number."""
    bins: dict[tuple[int, int], Var] = field(default_factory=dict)
    """Shares: (place, GPU of the node by its place in `gpus_of`) -> workers."""
    chosen: dict[tuple[int, int], Var] = field(default_factory=dict)
    """(Speed by its slowest node, tier of its links) -> whether it runs so; empty: there is one."""


@dataclass(slots=True)
class Load:
    """The parts of one place that gangs may take."""

    gpus: Sum = field(default_factory=list)
    cpu: Sum = field(default_factory=list)
    mem: Sum = field(default_factory=list)
    opened: list[Var] = field(default_factory=list)


class Variables:
    """The variables by place and by gang, and the objective so far."""

    def __init__(self, instance: Instance, places: list[NodeBundle]) -> None:
        self.instance = instance
        self.places = places
        self.cp = cp_model.CpModel()
        self.gain: Sum = []
        self.constant = 0
        self.now = [Load() for _ in places]
        self.later = [Load() for _ in places]
        self.shares: dict[tuple[int, int], Sum] = {}
        shares = (request.max_workers for request in instance.requests if request.is_share)
        self.share_workers = sum(shares)
        """Most GPUs that shares open on one node."""
        self.bundle_units: dict[int, list[Var]] = {}
        self.bundle_later: dict[int, list[Var]] = {}
        self.by_class: dict[int, list[int]] = {}
        for number, place in enumerate(places):
            self.by_class.setdefault(place.cls, []).append(number)
        self.gangs: list[GangVariables] = []
        self.stops: list[Var] = []
        self.reservations: dict[int, GangVariables] = {}
        self.migrants: list[GangVariables] = []
        self.waits: dict[tuple[int, int], Var] = {}
        """(Request, release) -> whether the job waits for it."""

    def bool(self) -> Var:
        return self.cp.new_bool_var("")

    def upto(self, most: int) -> Var:
        return self.bool() if most == 1 else self.cp.new_int_var(0, most, "")

    def cls(self, number: int) -> NodeClass:
        return self.instance.classes[self.places[number].cls]


def total(terms: Iterable[tuple[Var, int]]) -> Var:
    pairs = list(terms)
    if not pairs:
        return 0
    return cp_model.LinearExpr.weighted_sum([v for v, _ in pairs], [c for _, c in pairs])


def need_of(request: GangRequest) -> tuple[int, int, int, int]:
    return request.gpus, request.milli, request.cpu_milli, request.mem_mib


def free_of(cls: NodeClass) -> NodeRemainder:
    return NodeRemainder(cls.gpus, cls.whole, 0, cls.cpu_milli, cls.mem_mib)
