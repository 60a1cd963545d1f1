"""A year of nodes that come and go under new names leaves a bounded state, and no name begins
below a generation that it had."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from services.access.core.decide import DAY_MS, Access
from services.access.core.enrolment import FORGOTTEN_AFTER_MS
from services.access.core.state import AccessState
from services.executor.core.agents import state as executor
from services.executor.core.agents.evolve import end_record, evolve
from services.executor.core.agents.hello import action_for, last_generation
from services.executor.core.agents.state import AgentPool
from services.executor.core.consumed import CONSUMED
from services.placement.core.pool import fold_nodes
from shared.contracts.agents import Hello
from shared.contracts.base import Command
from shared.contracts.enrolment import CreateNodeToken, EnrollNode, RevokeNode
from shared.contracts.keys import hash_secret
from shared.contracts.node_registry import TOKENS_KEPT, UNKNOWN
from shared.contracts.nodes import NodeCordoned, NodeJoined
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import NodeLeaving, Report
from shared.ledger.decider import Fact, Input
from tests.services.placement.core.lane import START, Lane, registered

WEEKS = 52
NODES = 400
"""Nodes that join each week, and leave, are silent or are revoked at its end."""
VALID_WEEKS = 90 / 7 + FORGOTTEN_AFTER_MS / (7 * DAY_MS)
"""Weeks after which the identity of a node that is not renewed is forgotten."""
POOL = PoolConfigured(partition=0, pool="p", backends=("agent",))


@dataclass
class Installation:
    """The states of access, placement and an executor, folded from one year."""

    access: AccessState = field(default_factory=AccessState)
    lane: Lane = field(default_factory=Lane)
    agents: AgentPool = field(default_factory=lambda: AgentPool(0))
    folded: int = 0
    sizes: list[dict[str, int]] = field(default_factory=list)
    """Bytes of each state at the end of each week."""

    def command(self, week: int, *commands: Command) -> None:
        now, access = START + week * 7 * DAY_MS, Access()
        inputs = [
            Input("access.commands", f"{week}-{number}-{command.TYPE}", command)
            for number, command in enumerate(commands)
        ]
        for decision in access.decide(self.access, inputs, now):
            access.evolve(self.access, Fact(decision.event, "access", 0, 1, 0, now))

    def fold_agents(self) -> None:
        """Let the executor read what placement has decided since."""
        facts = self.lane.facts[self.folded :]
        self.folded = len(self.lane.facts)
        for fact in facts:
            if fact.event.TYPE.rpartition(".")[0] in CONSUMED:
                evolve(self.agents, fact)
        if facts:
            end_record(self.agents, facts[-1].seq, facts[-1].index + 1, "w")

    def week(self, week: int) -> None:
        names = [f"w{week}-{number}" for number in range(NODES)]
        self.command(
            week,
            CreateNodeToken(
                token_id=f"t{week}", sha256=hash_secret("t"), pool="p", ttl_s=86_400, approve=True
            ),
            *(
                EnrollNode(node_id=n, token_id=f"t{week}", credential_sha256=hash_secret(n))
                for n in names
            ),
        )
        self.lane.now = START + week * 7 * DAY_MS
        first = {name: last_generation(self.agents, name) + 1 for name in names}
        self.lane.report(*(registration(name, first[name]) for name in names))
        leaving, silent, revoked = names[::3], names[1::3], names[2::3]
        for name in leaving:
            self.leave(name)
        self.lane.silent(*silent, *revoked)
        self.command(week, *(RevokeNode(node_id=name, reason="scaled down") for name in revoked))
        self.fold_agents()
        self.sizes.append(
            {
                "access": len(pickle.dumps(self.access.view)),
                "placement": len(pickle.dumps(self.lane.state)),
                "executor": len(pickle.dumps(self.agents)),
            }
        )

    def leave(self, name: str) -> None:
        """Take a node out of service as its agent does: it refuses work, then it is gone."""
        event = NodeCordoned(node_id=name, draining=False, reason="leaves", until_joined=True)
        fact = Fact(event, "placement", 0, self.lane.seq, 0, self.lane.now)
        self.lane.decider.evolve(self.lane.state, fact)
        self.lane.report(NodeLeaving(node_id=name, incarnation="i1"))


def registration(name: str, generation: int, incarnation: str = "i1") -> Report:
    return registered(name, 8, incarnation, backend="agent", generation=generation)


def hello(name: str, generation: int) -> Hello:
    return Hello.model_validate(
        {
            "node_id": name,
            "incarnation": {"generation": generation, "uuid": "b" * 32},
            "version": "1",
            "boot_id": "b",
            "pid_namespace": "",
            "hardware": "",
            "lapsed": False,
            "applied": {"seq": 0, "index": 0},
            "reports_from": 1,
        }
    )


@pytest.fixture(scope="module")
def year() -> Iterator[Installation]:
    made = Installation()
    made.lane.feed(made.lane.an("access", POOL))
    made.access.view.apply(POOL)
    for week in range(WEEKS):
        made.week(week)
    yield made


@pytest.mark.slow
def test_no_state_grows_once_the_first_nodes_are_forgotten(year: Installation) -> None:
    enrolled = year.access.view.enrolled
    assert len(enrolled.nodes) <= (VALID_WEEKS + 2) * NODES and len(enrolled.tokens) <= TOKENS_KEPT
    pool = year.lane.state
    for kept in (pool.generations, pool.gone, pool.cordons, pool.leaving):
        assert len(kept) <= fold_nodes.GONE_KEPT + 1
    assert len(year.agents.nodes) <= executor.GONE_KEPT + 1
    settled, last = year.sizes[WEEKS // 2], year.sizes[-1]
    for name, size in last.items():
        assert size <= 1.05 * settled[name], (name, settled, last)


def test_a_forgotten_name_never_begins_below_a_generation_that_it_had(year: Installation) -> None:
    assert "w0-0" not in year.lane.state.generations and "w0-0" not in year.agents.nodes
    assert year.lane.report(registration("w0-0", 1, "i9")) == []
    assert action_for(year.agents, hello("w0-0", 1)) == "fence"
    following = last_generation(year.agents, "w0-0") + 1
    assert action_for(year.agents, hello("w0-0", following)) == "register"
    joined = year.lane.report(registration("w0-0", following, "i9"))
    assert [event.node_id for event in joined if isinstance(event, NodeJoined)] == ["w0-0"]


def test_executors_never_hand_out_a_generation_that_placement_refuses(year: Installation) -> None:
    assert year.agents.generation_floor >= year.lane.state.generation_floor > 0
    assert executor.GONE_KEPT < fold_nodes.GONE_KEPT


def test_a_new_node_joins_once_its_older_executor_is_replaced(year: Installation) -> None:
    """An executor that forgets no node hands out a generation that placement takes for an old one:
    the node waits, and begins above the floor with an executor of this version."""
    older = AgentPool(0)
    assert action_for(older, hello("late", last_generation(older, "late") + 1)) == "register"
    assert year.lane.report(registration("late", 1)) == []
    assert action_for(year.agents, hello("late", 1)) == "fence"
    following = last_generation(year.agents, "late") + 1
    joined = year.lane.report(registration("late", following))
    assert [event.node_id for event in joined if isinstance(event, NodeJoined)] == ["late"]


def test_a_forgotten_identity_is_refused_revoked_or_not(year: Installation) -> None:
    enrolled = year.access.view.enrolled
    for name in ("w0-0", "w0-2"):
        assert name not in enrolled.nodes
        assert enrolled.authenticate(f"{name}.{name}", START) == UNKNOWN
