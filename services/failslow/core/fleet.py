"""The nodes of the pool, and which of them are cordoned, from the placement ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shared.contracts.breaker import NodesNoted
from shared.contracts.node_problems import GPUS_UNUSABLE
from shared.contracts.nodes import NodeCordoned, NodeJoined, NodeLost, NodeUncordoned
from shared.ledger.decider import Input

CORDONS_KEPT = 10_000
"""Cordons of nodes that are gone: a node may come back, and its name then counts again."""


@dataclass(slots=True)
class Fleet:
    """Nodes by name, the earliest first."""

    nodes: dict[str, None] = field(default_factory=dict)
    cordoned: dict[str, None] = field(default_factory=dict)
    leaving: dict[str, None] = field(default_factory=dict)
    """Those of the cordoned nodes that are schedulable again when they join anew."""
    ordered: dict[str, str] = field(default_factory=dict)
    """Node that an applied plan cordons -> the plan, until placement has cordoned it."""
    reported_by: dict[str, str] = field(default_factory=dict)
    """Node that is out of use by the reports of one tenant alone -> the tenant."""
    is_breaker_open: bool = False

    @property
    def out_of_use(self) -> set[str]:
        """Nodes that are cordoned, or will be."""
        return {node for node in self.cordoned if node in self.nodes} | set(self.ordered)

    def note(self, event: NodesNoted) -> None:
        self.nodes |= dict.fromkeys(event.joined)
        for node_id in event.lost:
            self.nodes.pop(node_id, None)
        for node_id in event.uncordoned:
            self.cordoned.pop(node_id, None)
            self.leaving.pop(node_id, None)
            self.reported_by.pop(node_id, None)
        for node_id in event.cordoned:
            self.cordoned[node_id] = None
            self.leaving.pop(node_id, None)
            self.ordered.pop(node_id, None)
        self.leaving |= dict.fromkeys(event.leaving)
        self._forget_oldest()

    def order(self, plan_id: str, nodes: Iterable[str], alone: str = "") -> None:
        """Note that an applied plan cordons these nodes, by the reports of `alone` if not empty."""
        new = [node for node in nodes if node not in self.cordoned]
        self.ordered |= dict.fromkeys(new, plan_id)
        if alone:
            self.reported_by |= dict.fromkeys(new, alone)

    def held_by(self, tenant: str) -> set[str]:
        """Return the nodes that are out of use by the reports of the tenant alone."""
        return {node for node in self.out_of_use if self.reported_by.get(node) == tenant}

    def end_order(self, plan_id: str) -> None:
        for node in [node for node, plan in self.ordered.items() if plan == plan_id]:
            self.reported_by.pop(node, None)
        self.ordered = {node: plan for node, plan in self.ordered.items() if plan != plan_id}

    def _forget_oldest(self) -> None:
        gone = [node_id for node_id in self.cordoned if node_id not in self.nodes]
        for node_id in gone[: max(0, len(gone) - CORDONS_KEPT)]:
            del self.cordoned[node_id]
            self.leaving.pop(node_id, None)
            self.reported_by.pop(node_id, None)


@dataclass(slots=True)
class FleetChanges:
    """Effect of one batch of inputs on the nodes; of several changes of a node the last counts."""

    present: dict[str, bool] = field(default_factory=dict)
    cordons: dict[str, bool] = field(default_factory=dict)
    leaving: dict[str, bool] = field(default_factory=dict)

    def add(self, fleet: Fleet, item: Input) -> None:
        """Add one input of the placement ledger."""
        match item.message:
            case NodeJoined(node_id=node_id):
                self.present[node_id] = True
                if self.leaving.get(node_id, node_id in fleet.leaving):
                    self.cordons[node_id] = self.leaving[node_id] = False
            case NodeLost(node_id=node_id):
                self.present[node_id] = False
            case NodeCordoned(node_id=node_id, fault_ids=reasons) if is_unusable(reasons):
                self.cordons[node_id] = self.leaving[node_id] = False
            case NodeCordoned(node_id=node_id, until_joined=until_joined):
                self.cordons[node_id], self.leaving[node_id] = True, until_joined
            case NodeUncordoned(node_id=node_id):
                self.cordons[node_id] = self.leaving[node_id] = False

    def to_event(self, pool: str, fleet: Fleet) -> NodesNoted | None:
        """Return what differs from the nodes as noted; None if nothing does."""
        present = {n: new for n, new in self.present.items() if new != (n in fleet.nodes)}
        cordons = {n: new for n, new in self.cordons.items() if new != (n in fleet.cordoned)}
        leaving = {n: new for n, new in self.leaving.items() if new != (n in fleet.leaving)}
        if not (present or cordons or leaving):
            return None
        return NodesNoted(
            pool=pool,
            joined=_those(present, True),
            lost=_those(present, False),
            cordoned=_those(cordons | _restated(self.cordons, leaving), True),
            uncordoned=_those(cordons, False),
            leaving=_those(leaving, True),
        )


def is_unusable(reasons: tuple[str, ...]) -> bool:
    """Return whether a node is cordoned for its GPUs alone; that counts for no bound here."""
    return bool(reasons) and GPUS_UNUSABLE.issuperset(reasons)


def _restated(cordons: dict[str, bool], leaving: dict[str, bool]) -> dict[str, bool]:
    """Return the nodes of which the cordon stays, and only its end differs."""
    return {node_id: True for node_id in leaving if cordons.get(node_id)}


def _those(changes: dict[str, bool], value: bool) -> tuple[str, ...]:
    return tuple(node_id for node_id, changed in changes.items() if changed is value)
