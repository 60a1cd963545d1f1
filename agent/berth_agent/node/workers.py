"""The workers that the agent holds: orders become files, and files become reports."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from berth_agent.core.environment import master_port_variables
from berth_agent.core.reports import Stage, current_stage, next_report
from berth_agent.linux import processes
from berth_agent.messages import Launch, NodeReport, Order, StepState
from berth_agent.node.config import Config
from berth_agent.node.enforcement import all_of
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.files.folders import Folders
from berth_agent.node.launch.launcher import free_port
from berth_agent.node.launch.spare_step import SpareStep
from berth_agent.node.system.inventory import Inventory
from berth_agent.token_names import STEP_TOKEN, TOKEN
from berth_agent.tokens import NodeTokens

FENCE_GRACE_S = 30.0
MAX_DROPPED = 256
"""Dropped workers that wait until their output is read to its end."""
LOST_EXIT_CODE = 137
SHOWN_PHASES = ("prepared", "starting", "running", "stopping", "dead", "stuck")


class Workers:
    """Single-threaded: used under the agent's lock. Methods raise OSError on a full disk."""

    def __init__(
        self,
        config: Config,
        read_tokens: Callable[[], NodeTokens],
        folders: Folders,
        launch: Callable[[AllocationFolder], None],
        spare: SpareStep,
        inventory: Inventory,
    ) -> None:
        self._config = config
        self._inventory = inventory
        self._spare = spare
        self._read_tokens = read_tokens
        self._folders = folders
        self._launch = launch
        self._held: dict[str, AllocationFolder] = {}
        self._dropped: deque[AllocationFolder] = deque(maxlen=MAX_DROPPED)
        for allocation in folders.read_all():
            self._held[allocation.allocation_id] = allocation
        folders.secrets.sweep({allocation.secrets_file for allocation in self})

    def __iter__(self) -> Iterator[AllocationFolder]:
        return iter(list(self._held.values()))

    def holds(self, allocation_id: str) -> bool:
        return allocation_id in self._held

    def states(self) -> tuple[StepState, ...]:
        """Return the phases that a hello reports."""
        return tuple(
            StepState(
                allocation_id=allocation.allocation_id,
                phase=allocation.phase,  # type: ignore[arg-type]
                exit_code=allocation.state.get("exit_code"),
            )
            for allocation in self
            if allocation.phase in SHOWN_PHASES
        )

    def lacking_gpus(self, launch: Launch) -> str:
        """Return what the machine lacks of the GPUs of a launch, empty where it has all of them."""
        return self._inventory.lacking(launch.gpus)

    def keep_secrets(self, order: Order) -> str:
        """Keep the values of a worker that is to be prepared; return why that is not possible."""
        if order.launch is None or not order.launch.secrets:
            return ""
        folder = self._folders.path_of(order.allocation_id)
        return self._folders.secrets.keep(os.path.basename(folder), order.launch.secrets)

    def note_prepare(self, order: Order) -> AllocationFolder:
        """Note a worker to prepare, its secrets being kept already.

        Noted again after a crash, it keeps its token and port.
        """
        present = self._held.get(order.allocation_id)
        if present is not None:
            return present
        folder, launch = self._folders.path_of(order.allocation_id), order.launch
        secrets_file = ""
        if launch is not None and launch.secrets:
            secrets_file = self._folders.secrets.path_of(os.path.basename(folder))
            order = replace(order, launch=replace(launch, secrets={}))
        allocation = AllocationFolder(
            folder, order, self._spare.new_token(), self._port(order), secrets_file, launching=True
        )
        try:
            allocation.write_order()
        except OSError:
            self._spare.drop(allocation.token)
            raise
        self._held[order.allocation_id] = allocation
        return allocation

    def begin(self, allocation_id: str) -> None:
        """Start the step of a noted worker, which is done in another thread."""
        allocation = self._held.get(allocation_id)
        if allocation is not None and not allocation.state and allocation.launching:
            self._launch(allocation)

    def note_go(self, order: Order) -> None:
        """Note that a worker may start; its step looks for the note."""
        allocation = self._held[order.allocation_id]
        if not (allocation.launch.starts_alone and allocation.has_go()):
            _start(allocation, order.master_port or allocation.master_port)

    def start_alone(self, incarnation: str, is_unsent: Callable[[str], bool]) -> None:
        """Start the workers that wait for no others and whose readiness is acknowledged."""
        for allocation in self:
            is_own = allocation.order.incarnation == incarnation
            if is_own and allocation.waits_alone() and not is_unsent(allocation.allocation_id):
                _start(allocation, allocation.master_port)

    def stop(self, allocation_id: str, grace_s: float, reason: str, now_ms: int) -> None:
        """Stop a worker for good; where its step is just starting, the next tick does it."""
        self._held[allocation_id].stop(grace_s, reason, now_ms)

    def fence(self, now_ms: int, kept: str | None) -> None:
        """End all workers but those of the incarnation `kept`; their grace is short."""

        def end(allocation: AllocationFolder) -> None:
            if not allocation.is_dead and not allocation.fenced:
                grace_s = min(allocation.launch.grace_s, FENCE_GRACE_S)
                self.stop(allocation.allocation_id, grace_s, "fenced", now_ms)
                allocation.fenced = True

        all_of(*(partial(end, allocation) for allocation in self._others(kept)))

    def grace_of(self, allocation_id: str) -> float:
        return self._held[allocation_id].launch.grace_s

    def forget(self, allocation_id: str, now_ms: int) -> None:
        """Drop a worker whose allocation the ledger released; one that lives is ended first."""
        allocation = self._held[allocation_id]
        if allocation.is_dead and not allocation.is_step_alive():
            self._drop(allocation)
        else:
            allocation.released = True
            self.stop(allocation_id, 0.0, "stopped", now_ms)

    def repeat(self, allocation_id: str) -> None:
        """Let the report of the present state be made again."""
        allocation = self._held[allocation_id]
        stage = current_stage(allocation.view())
        if stage is not None:
            allocation.reported.discard(stage)

    def scan(self, now_ms: int, may_run: bool) -> None:
        """Read what the steps noted, and note what they did not."""

        def look(allocation: AllocationFolder) -> None:
            if not allocation.is_dead:
                allocation.read_state()
            if allocation.is_dead:
                if allocation.released and not allocation.is_step_alive():
                    self._drop(allocation)
            elif not allocation.launching:
                self._supervise(allocation, now_ms, may_run)

        all_of(*(partial(look, allocation) for allocation in self))

    def due_reports(self) -> Iterator[tuple[AllocationFolder, Stage, NodeReport]]:
        """Yield the reports that are due, in the order of the allocations."""
        for allocation in self:
            due = next_report(allocation.view())
            if due is not None and not allocation.released:
                yield allocation, *due

    def is_clear_of_others(self, kept: str) -> bool:
        """Return whether no worker of another incarnation lives, but those that cannot be
        killed.
        """
        others = self._others(kept)
        return all(a.phase in ("dead", "stuck") and not a.launching for a in others)

    def _others(self, kept: str | None) -> list[AllocationFolder]:
        return [a for a in self if a.order.incarnation != kept]

    def stuck_gpus(self) -> set[int]:
        """Return the GPUs that a worker occupies although it was killed."""
        return {gpu for a in self if a.phase == "stuck" for gpu in a.launch.gpus}

    def strays(self) -> list[int]:
        """Return processes of this node's workers and steps that it does not know."""
        known = {allocation.token for allocation in self} | self._spare.tokens()
        names, own = (TOKEN, STEP_TOKEN), self._read_tokens()
        tokens = {
            pid: processes.token_of(pid, names)
            for pid in processes.with_token(f"{own.node_id}:", names)
        }
        return [pid for pid, token in tokens.items() if token not in known and own.is_own(token)]

    def clear_others(self, kept: str) -> bool:
        """Kill unknown processes of other incarnations; return whether nothing of them lives."""
        if not self.is_clear_of_others(kept):
            return False
        strays = self.strays()
        processes.kill_each(strays)
        return not strays

    def drop_others(self, kept: str) -> None:
        """Drop the dead workers of other incarnations: the ledger releases them otherwise."""
        for allocation in self._others(kept):
            if allocation.is_dead:
                self._drop(allocation)

    def take_dropped(self) -> list[AllocationFolder]:
        """Return the workers that were dropped since the last call, whose output may be unread."""
        dropped = list(self._dropped)
        self._dropped.clear()
        return dropped

    def have_noted(self, terms_id: str) -> bool:
        """Return whether each living step has read a deadline of these terms."""
        living = (a for a in self if not a.is_dead and a.state)
        return all(allocation.noted_terms() == terms_id for allocation in living)

    def _supervise(self, allocation: AllocationFolder, now_ms: int, may_run: bool) -> None:
        stop = allocation.noted_stop()
        if stop is not None:
            allocation.leave_tombstone(float(stop["grace_s"]), str(stop["reason"]))
        if not allocation.is_step_alive():
            # It may have noted its end between the two looks.
            allocation.read_state()
            if not allocation.is_dead:
                self._end_lost(allocation, now_ms, may_run)

    def _end_lost(self, allocation: AllocationFolder, now_ms: int, may_run: bool) -> None:
        """End a worker without a step, once nothing of it lives."""
        untried = not allocation.state and allocation.launch_failure is None
        if untried and may_run and allocation.tombstone() is None:
            allocation.launching = True
            self._launch(allocation)
            return
        # A process that becomes another program is known by nothing for a moment: two looks.
        if allocation.leftovers() or allocation.leftovers():
            self._kill_leftovers(allocation, now_ms)
        elif allocation.leave_tombstone(0.0, "lost"):
            self._note_lost(allocation)

    def _kill_leftovers(self, allocation: AllocationFolder, now_ms: int) -> None:
        allocation.kill()
        allocation.killed_ms = allocation.killed_ms or now_ms
        if now_ms - allocation.killed_ms > self._config.kill_s * 1000:
            allocation.state["phase"] = "stuck"

    def _note_lost(self, allocation: AllocationFolder) -> None:
        tombstone = allocation.tombstone() or {}
        if tombstone.get("reason") == "stopped":
            code = LOST_EXIT_CODE if allocation.state.get("started") else None
            allocation.write_end(stopped=True, exit_code=code)
            return
        reason = "fenced" if tombstone.get("reason") == "fenced" else "step_lost"
        detail = allocation.step_log() or "the step of the worker was killed"
        lost = {"reason": reason, "detail": detail, "output": [], "permanent": False}
        started = bool(allocation.state.get("started"))
        allocation.write_end(
            exit_code=LOST_EXIT_CODE if started else None, failure=allocation.launch_failure or lost
        )

    def _drop(self, allocation: AllocationFolder) -> None:
        self._folders.retire(allocation)
        del self._held[allocation.allocation_id]
        self._dropped.append(allocation)

    def _port(self, order: Order) -> int | None:
        """Return a port for the gang if this is its rank 0."""
        if order.launch is None or order.launch.rank != 0:
            return None
        taken = {a.master_port for a in self if a.master_port is not None}
        return free_port(self._config.port_first, self._config.port_count, taken)


def _start(allocation: AllocationFolder, port: int | None) -> None:
    allocation.note_go(master_port_variables(port))
    allocation.wake()
