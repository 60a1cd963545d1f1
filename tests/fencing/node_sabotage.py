"""One rule of node, executor, reader or decider each, removed from a copy of the sources.

Rules of the decider are here where `sabotage.py` has no patch of them.
"""

from __future__ import annotations

from typing import NamedTuple

AGENT = "agent/berth_agent"
LEASE = "tests/agent/step/test_main_lease.py"
STORE = "tests/agent/node/test_incarnation_store.py"
SERVER = "tests/services/executor/agents/test_server.py"
HEARTBEATS = "tests/services/placement/test_heartbeats.py"
ORDERS = "tests/agent/core/test_orders.py"
BOOK = "tests/agent/node/test_order_book.py"
NODE_LEASES = "tests/agent/node/test_run_leases.py"
AGENT_TESTS = "tests/agent/node/test_agent.py"
TERMS = "tests/agent/core/test_lease.py"
POOL_LEASES = "tests/services/placement/core/lifecycle/test_leases.py"
NODE = "services/placement/core/pool/node.py"


class Sabotage(NamedTuple):
    """A text that is in a file once, its replacement, and tests of which some must fail."""

    path: str
    rule: str
    replacement: str
    tests: str


SABOTAGES = {
    "rule 1: a generation is sent before it is on disk": Sabotage(
        f"{AGENT}/node/incarnation_store.py",
        "        files.write_json(self._state_path, self._present.to_json())\n",
        "",
        f"{STORE}::test_an_incarnation_is_on_disk_before_it_is_used",
    ),
    "rule 1: an incarnation goes on without its lease": Sabotage(
        f"{AGENT}/node/incarnation_store.py",
        "            if lease is not None:\n",
        "            lease = lease or Lease(held.incarnation.uuid, self.terms)\n"
        "            if lease:\n",
        f"{STORE}::test_an_incarnation_is_on_disk_before_it_is_used",
    ),
    "R1 a deadline counts from the answer": Sabotage(
        f"{AGENT}/node/incarnation_store.py",
        "acknowledge(heartbeat.sent_boot_ms, now_ms)",
        "acknowledge(now_ms, now_ms)",
        f"{STORE}::test_a_late_answer_extends_the_lease_from_the_time_of_sending",
    ),
    "R2 an answer after the deadline extends it": Sabotage(
        f"{AGENT}/core/lease.py",
        "if not self.may_send_heartbeat(now_ms) or sent_ms",
        "if not self.begun or sent_ms",
        f"{STORE}::test_an_answer_after_the_deadline_is_not_written",
    ),
    "R3 a registration is sent after its lease": Sabotage(
        f"{AGENT}/node/agent.py",
        "if lease.is_over(boot_ms()) and not lease.joined:",
        "if False:",
        f"{AGENT_TESTS}::test_the_first_lease_counts_from_the_first_sending_of_the_registration",
    ),
    "R4 a lapse before the start is not noticed": Sabotage(
        f"{AGENT}/step/main.py",
        " or not self._watch.lease.may_start(boot_ms()):",
        ":",
        f"{LEASE}::test_a_lease_that_lapses_while_the_start_waits_starts_nothing",
    ),
    "R4 a lapse during the start is not noticed": Sabotage(
        f"{AGENT}/step/main.py",
        "run.release_if(self._watch.lease.may_start(boot_ms()), variables)",
        "run.release_if(True, variables)",
        f"{LEASE}::test_a_lease_that_lapses_during_the_start_releases_no_program",
    ),
    "R5 a start of another incarnation is carried out": Sabotage(
        f"{AGENT}/core/orders.py",
        '    if order.incarnation != incarnation:\n        return "ignore"\n',
        "",
        f"{ORDERS}::test_a_worker_starts_only_by_a_new_order_of_this_incarnation_under_a_lease",
    ),
    "R5 a worker of another incarnation is answered for": Sabotage(
        f"{AGENT}/core/orders.py",
        '    if not is_held and order.incarnation != incarnation:\n        return "ignore"\n',
        "",
        f"{ORDERS}::test_only_workers_of_this_incarnation_are_reported_as_unknown",
    ),
    "R6 an old order is carried out": Sabotage(
        f"{AGENT}/core/orders.py",
        "    if not is_after(order.position, applied):\n",
        "    if False:\n",
        f"{ORDERS}::test_a_worker_starts_only_by_a_new_order_of_this_incarnation_under_a_lease",
    ),
    "R6 the position of what was carried out is not kept": Sabotage(
        f"{AGENT}/node/order_book.py",
        "for order in answer.orders):\n"
        "                self._write(answer.through, answer.writer)\n",
        "for order in answer.orders):\n                pass\n",
        f"{BOOK}::test_an_order_is_on_disk_with_its_position_before_it_has_an_effect",
    ),
    "R6 an order has its effect before its position is kept": Sabotage(
        f"{AGENT}/node/order_book.py",
        "if (effect := self._note(order, now_ms))]\n",
        "if (effect := self._note(order, now_ms))]\n"
        "        for effect in effects:\n"
        "            effect()\n",
        f"{BOOK}::test_an_order_is_on_disk_with_its_position_before_it_has_an_effect",
    ),
    "R7 a start does not look for the tombstone": Sabotage(
        f"{AGENT}/step/main.py",
        "if self._watch.tombstone is not None or not self._watch.lease.may_start",
        "if not self._watch.lease.may_start",
        "tests/agent/step/test_main.py::test_a_tombstone_that_precedes_the_step_is_final",
    ),
    "R7 a step is called lost without a tombstone": Sabotage(
        f"{AGENT}/node/workers.py",
        'elif allocation.leave_tombstone(0.0, "lost"):',
        "else:",
        f"{BOOK}::test_a_step_that_may_have_been_forked_is_lost_only_behind_a_tombstone",
    ),
    "R8 an end is reported while something lives": Sabotage(
        f"{AGENT}/node/workers.py",
        "        if allocation.leftovers() or allocation.leftovers():",
        "        if False:",
        "tests/agent/node/test_run_leases.py::test_without_namespaces_the_agent_sweeps_what_escaped",
    ),
    "R8 a worker whose order was lost is said not to run": Sabotage(
        f"{AGENT}/node/run.py",
        "if incarnations.lease.begun and not end_strays(workers.strays):",
        "if False:",
        f"{NODE_LEASES}::test_a_worker_without_its_order_ends_before_it_is_reported",
    ),
    "R9 a new incarnation begins while workers live": Sabotage(
        f"{AGENT}/node/workers.py",
        "        if not self.is_clear_of_others(kept):\n            return False\n",
        "",
        f"{AGENT_TESTS}::test_a_new_incarnation_begins_when_nothing_of_the_older_one_lives",
    ),
    "R9 a process of a lost state folder lives on": Sabotage(
        f"{AGENT}/node/workers.py",
        "        processes.kill_each(strays)\n        return not strays\n",
        "        return True\n",
        f"{NODE_LEASES}::test_a_lost_state_folder_takes_the_next_generation",
    ),
    "R17 the clock stops in suspend": Sabotage(
        f"{AGENT}/linux/clocks.py",
        "CLOCK_BOOTTIME) //",
        "CLOCK_MONOTONIC) //",
        f"{LEASE}::test_time_in_which_the_machine_was_suspended_counts",
    ),
    "R18 the agent does not kill at the deadline": Sabotage(
        f"{AGENT}/node/enforcement.py",
        "        if (lapsed or ignored) and",
        "        if ignored and",
        f"{BOOK}::test_a_step_that_outlives_its_time_is_killed",
    ),
    "R18 a kill of the agent waits for its disk": Sabotage(
        f"{AGENT}/node/agent.py",
        "        kill_overdue(workers, now_ms, lease.deadline_ms if lease.begun else None)\n"
        "        all_of("
        "lambda: workers.fence(now_ms, kept), lambda: workers.scan(now_ms, may_run))\n",
        "        all_of("
        "lambda: workers.fence(now_ms, kept), lambda: workers.scan(now_ms, may_run))\n"
        "        kill_overdue(workers, now_ms, lease.deadline_ms if lease.begun else None)\n",
        f"{AGENT_TESTS}::test_a_disk_that_refuses_writes_puts_no_kill_off",
    ),
    "R18 the init does not look at the lease": Sabotage(
        f"{AGENT}/step/worker.py",
        "            guard.begin(self._end_at_deadline)\n",
        "",
        f"{LEASE}::test_the_init_ends_the_worker_of_a_step_that_hangs",
    ),
    "R18 the agent does not kill what ignores a stop": Sabotage(
        f"{AGENT}/node/enforcement.py",
        "        if (lapsed or ignored) and",
        "        if lapsed and",
        f"{BOOK}::test_a_step_that_outlives_its_time_is_killed",
    ),
    "R19 a worker survives its step": Sabotage(
        f"{AGENT}/step/worker.py",
        "        syscalls.set_death_signal(signal.SIGKILL)\n        poll = select",
        "        poll = select",
        "tests/agent/step/test_main.py::test_an_escaped_grandchild_dies_when_the_step_is_killed",
    ),
    "R20 a GPU whose worker does not die is offered": Sabotage(
        f"{AGENT}/node/run.py",
        "{*self._inventory.unusable, *stuck}",
        "{*self._inventory.unusable}",
        f"{NODE_LEASES}::test_the_gpu_of_a_worker_that_does_not_die_is_not_offered",
    ),
    "R24 another node reports an end": Sabotage(
        "services/executor/core/agents/restate.py",
        "    if worker.node_id != node_id:\n        raise ForeignWorker(worker.allocation_id)\n",
        "",
        "tests/services/executor/core/agents/test_restate.py::test_a_worker_of_another_node_is_refused",
    ),
    "R28 incarnations are named by their generation alone": Sabotage(
        f"{AGENT}/node/incarnation_store.py",
        "rules.next_incarnation(held, 0, uuid4().hex, self.machine, self._installation())",
        'rules.next_incarnation(held, 0, "0" * 32, self.machine, self._installation())',
        f"{STORE}::test_without_its_lease_or_after_a_reboot_an_incarnation_does_not_go_on",
    ),
    "R25 a preemption's grace outlasts the deadline": Sabotage(
        f"{AGENT}/step/limits.py",
        "        self._apply_lease(lease, now_ms)\n",
        "        if not self.ending.reason:\n            self._apply_lease(lease, now_ms)\n",
        "tests/agent/step/test_limits.py"
        "::test_the_deadline_is_the_end_although_the_grace_of_a_stop_runs",
    ),
    "rule 9: an executor with an old fold gives orders": Sabotage(
        "services/executor/agents/requests.py",
        "if not lane.is_fresh() or lane.state.through < after:",
        "if lane.state.through < after:",
        f"{SERVER}::test_an_executor_that_cannot_read_its_ledger_gives_no_orders",
    ),
    "rule 1: an incarnation goes on in another pid namespace": Sabotage(
        f"{AGENT}/core/incarnation.py",
        "return (held.boot_id, held.pid_namespace) == present",
        "return held.boot_id == machine.boot_id",
        "tests/agent/core/test_incarnation.py",
    ),
    "rule 3: a reboot of any hardware frees": Sabotage(
        NODE,
        " and bool(self.hardware) and self.hardware == other.hardware\n",
        "\n",
        f"{POOL_LEASES}::test_another_machine_waits_until_the_older_incarnation_holds_nothing",
    ),
    "rule 3: hardware that both lack frees": Sabotage(
        NODE, " and bool(self.hardware) and ", " and ", POOL_LEASES
    ),
    "rule 3: the same boot in any pid namespace frees": Sabotage(
        NODE,
        "return bool(self.pid_namespace) and self.pid_namespace in namespaces_of(other)",
        "return True",
        f"{POOL_LEASES}::test_another_machine_waits_until_the_older_incarnation_holds_nothing",
    ),
    "rule 3: a pid namespace that both lack frees": Sabotage(
        NODE, "return bool(self.pid_namespace) and ", "return ", POOL_LEASES
    ),
    "rule 3: the same hardware frees without a reboot": Sabotage(
        NODE,
        "is_reboot = bool(self.boot_id) and bool(other.boot_id)",
        "is_reboot = True",
        f"{POOL_LEASES}::test_another_machine_waits_until_the_older_incarnation_holds_nothing",
    ),
    "rule 13: silence under other terms releases": Sabotage(
        "services/placement/core/lifecycle/leases.py",
        "        if silent.terms_id != node.oldest_terms:\n            continue\n",
        "",
        f"{POOL_LEASES}::test_silence_of_another_incarnation_or_of_older_terms_changes_nothing",
    ),
    "rule 17: terms are reported before the old deadlines have passed": Sabotage(
        f"{AGENT}/core/lease.py",
        "        if length_s is not None and self.handed_ms > now_ms + _ms(length_s):\n"
        '            return ""\n',
        "",
        f"{TERMS}::test_shorter_terms_are_reported_when_the_older_deadlines_have_come_near",
    ),
    "rule 17: terms are reported before the steps have read them": Sabotage(
        f"{AGENT}/core/lease.py",
        "        if not (noted_by_steps and bounded):\n",
        "        if not bounded:\n",
        TERMS,
    ),
    "rule 17: terms are reported while workers are kept": Sabotage(
        f"{AGENT}/core/lease.py",
        "        if not (noted_by_steps and bounded):\n",
        "        if not noted_by_steps:\n",
        f"{TERMS}::test_without_an_end_workers_are_kept",
    ),
    "R12 the time of reading counts as silence": Sabotage(
        "services/placement/heartbeats.py",
        "                await self._offer_silent(now_s)",
        "                await self._offer_silent(self._clock())",
        f"{HEARTBEATS}::test_time_that_passes_while_the_end_is_read_is_no_silence",
    ),
    "R13 counts go on after a gap": Sabotage(
        "services/placement/heartbeats.py",
        "        self._silence.begin_anew(self._clock())\n",
        "",
        f"{HEARTBEATS}::test_a_lost_tail_lets_all_counts_begin_anew",
    ),
    "R14 a new reader begins at the end": Sabotage(
        "services/placement/heartbeats.py",
        "await self._log.start(min(offsets, default=None))",
        "await self._log.start(None)",
        f"{HEARTBEATS}::test_a_restart_reads_what_was_sent_since_the_last_note",
    ),
}
