"""GPUs of a lost node are released only by a proof that nothing of it lives.

A proof is its silence for as long as its terms require, a registration of the same machine, or the
word of an operator. The end of a worker that its node reports needs none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from shared.projections.ledger_events import LedgerEvent, Payload
from shared.verify.rules import Violation

IN_EXECUTOR = ("virtual", "process")
DEFAULTS: Mapping[str, Any] = {
    "lease_s": 30.0,
    "stop_after_s": 600.0,
    "kill_s": 15.0,
    "clock_rate_bound": 1.25,
    "slack_s": 5.0,
}
"""Settings that a pool of an older ledger lacks."""


@dataclass(slots=True)
class PoolLeases:
    """The settings of a lane's pool, each version by the place at which it came."""

    versions: dict[str, Payload] = field(default_factory=dict)
    """Terms id -> settings under which it was handed out, oldest first."""

    def configure(self, event: LedgerEvent) -> None:
        settings = {name: event.data.get(name, value) for name, value in DEFAULTS.items()}
        self.versions[f"{event.seq}.{event.index}"] = settings

    @property
    def present(self) -> Payload:
        return next(reversed(self.versions.values()), dict(DEFAULTS))

    def lost_after_ms(self, node: WatchedNode) -> float:
        """Return the silence that proves the end of a node, by all terms it may still use."""
        ids = list(self.versions)
        first = ids.index(node.terms_id) if node.terms_id in ids else max(len(ids) - 1, 0)
        in_use = list(self.versions.values())[first:]
        stops = [stop_after_s(settings, node.backend) for settings in in_use]
        longest_s = max(stops, default=stop_after_s(self.present, node.backend))
        if node.backend in IN_EXECUTOR:
            return 2000 * longest_s
        now = self.present
        return float(
            1000 * (now["clock_rate_bound"] * (longest_s + now["kill_s"]) + now["slack_s"])
        )


def stop_after_s(settings: Payload, backend: str) -> float:
    if backend in IN_EXECUTOR:
        return float(settings["lease_s"])
    stop_s = settings["stop_after_s"]
    return math.inf if stop_s == "keep" else float(stop_s)


@dataclass(slots=True)
class WatchedNode:
    """The joined incarnation of a node, and what is known of its end."""

    joined: Payload
    terms_id: str
    is_over: bool = False
    is_suspected: bool = False
    lost_at: int | None = None
    unproved: list[tuple[str, str]] = field(default_factory=list)
    """Places and ids of releases that a registration of the same machine has yet to justify."""

    @property
    def backend(self) -> str:
        return str(self.joined["backend"])

    @property
    def generation(self) -> int:
        return int(self.joined.get("generation", 0))

    def is_same_machine(self, joined: Payload) -> bool:
        """Return whether the registration proves that the older incarnation ended."""
        if not self.generation and self.backend in IN_EXECUTOR:
            return True
        old, new = self.joined, joined
        if old.get("boot_id") and old.get("boot_id") == new.get("boot_id"):
            before, after = str(old.get("pid_namespace", "")), str(new.get("pid_namespace", ""))
            # A node of before names no installation; a later agent ends what such a one left.
            return bool(before) and before in (after, after.partition("/")[0])
        is_reboot = bool(old.get("boot_id") and new.get("boot_id"))
        return is_reboot and bool(old.get("hardware")) and old["hardware"] == new.get("hardware")


@dataclass(slots=True)
class ReleaseProofRule:
    """Replays the lives of all nodes; older ledgers had no generations and release by the clock."""

    CARRIED: ClassVar[tuple[str, ...]] = ("pools", "nodes", "generations")
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    name: str = "the GPUs of a lost node are released by a proof that nothing of it lives"
    pools: dict[int, PoolLeases] = field(default_factory=dict)
    nodes: dict[str, WatchedNode] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def observe(self, event: LedgerEvent) -> None:
        if event.ledger != "placement":
            return
        if event.type == "pool.configured.v1":
            self.pools.setdefault(event.partition, PoolLeases()).configure(event)
        elif event.type == "job.placed.v1":
            self._place(event)
        elif event.type == "allocation.released.v1":
            self._release(event)
        elif event.type.startswith("node."):
            self._observe_node(event)

    def finish(self) -> Iterator[Violation]:
        yield from self.violations

    def _observe_node(self, event: LedgerEvent) -> None:
        node = self.nodes.get(event.data["node_id"])
        match event.type:
            case "node.joined.v1":
                self._join(event, node)
            case "node.lost.v1" if node is not None:
                self._lose(event, node)
            case "node.suspected.v1" | "node.heard.v1" if node is not None:
                self._check_incarnation(event, node)
                node.is_suspected = event.type == "node.suspected.v1"
            case "node.terms-applied.v1" if node is not None:
                self._check_incarnation(event, node)
                node.terms_id, node.is_suspected = event.data["terms_id"], False
            case _:
                pass

    def _join(self, event: LedgerEvent, old: WatchedNode | None) -> None:
        data, node_id = event.data, event.data["node_id"]
        generation, known = data.get("generation", 0), self.generations.get(node_id, 0)
        if generation and generation <= known:
            self._add(event.id, f"{node_id} joins with generation {generation} after {known}")
        self.generations[node_id] = max(known, generation)
        if old is not None and not old.is_same_machine(data):
            for place, allocation_id in old.unproved:
                self._add(place, f"{allocation_id} is released, and another machine joins")
        versions = self.pools.setdefault(event.partition, PoolLeases()).versions
        terms_id = data.get("terms_id") or next(reversed(versions), "")
        self.nodes[node_id] = WatchedNode(data, terms_id)

    def _lose(self, event: LedgerEvent, node: WatchedNode) -> None:
        self._check_incarnation(event, node)
        data = event.data
        bound_ms = self.pools.setdefault(event.partition, PoolLeases()).lost_after_ms(node)
        is_silent = data["reason"] == "silent" and round(data["silent_s"] * 1000) >= bound_ms
        node.is_over = node.is_over or is_silent or data.get("powered_off", False)
        node.lost_at = event.at
        if data["reason"] == "silent" and not is_silent and node.generation:
            self._add(event.id, f"{data['node_id']} is lost after {data['silent_s']} s of silence")

    def _place(self, event: LedgerEvent) -> None:
        for allocation in event.data["allocations"]:
            node = self.nodes.get(allocation["node_id"])
            unusable = set(node.joined.get("unusable_gpus", ())) if node else set()
            if node is not None and node.is_suspected:
                self._add(event.id, f"a worker is placed on {allocation['node_id']}, not heard of")
            if unusable.intersection(allocation.get("gpus", ())):
                self._add(event.id, f"a worker gets an unusable GPU of {allocation['node_id']}")

    def _release(self, event: LedgerEvent) -> None:
        data = event.data
        node = self.nodes.get(data["node_id"])
        if data["reason"] != "lease_over" or node is None or node.is_over:
            return
        if node.generation or node.lost_at is None:
            node.unproved.append((event.id, data["allocation_id"]))

    def _check_incarnation(self, event: LedgerEvent, node: WatchedNode) -> None:
        named, joined = event.data["incarnation"], node.joined["incarnation"]
        if named != joined:
            self._add(event.id, f"{event.type} names {named}, the node joined as {joined}")

    def _add(self, place: str, detail: str) -> None:
        self.violations.append(Violation(self.name, place, detail))
