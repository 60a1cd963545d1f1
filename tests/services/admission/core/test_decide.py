from __future__ import annotations

import pytest

from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_commands import RejectSubmission
from shared.contracts.nodes import CordonNode
from shared.contracts.pools import PoolConfigured
from shared.contracts.rejected import InputRejected
from shared.ledger.decider import Undecodable
from tests.harness.decider import an_input, given
from tests.harness.hash_seeds import printed_under_two_hash_seeds
from tests.services.admission.core.cases import (
    ADMISSION,
    POOL,
    command,
    placed,
    pool,
    quota,
    submit,
    succeeded,
    summarize_jobs,
    when,
)

SCRIPT = "from tests.services.admission.core.history import digest; print(digest())"


def test_undecodable_bytes_are_rejected_with_their_place() -> None:
    bad = an_input(Undecodable("commands", 0, 7, "data: no JSON", "ab"))
    assert when(pool(), bad) == [
        InputRejected(topic="commands", partition=0, offset=7, reason="data: no JSON", sha256="ab")
    ]


def test_a_submission_that_the_gateway_could_not_read_is_rejected_once() -> None:
    rejection = RejectSubmission(
        tenant="acme", topic="submissions.acme", partition=2, offset=5, reason="bad", sha256="ab"
    )
    state, item = pool(), command(rejection, "c9")
    answer, rejected = when(state, item)
    assert isinstance(answer, CommandAccepted)
    assert (answer.command_id, answer.of) == ("c9", "submissions.acme/2/5")
    assert rejected == InputRejected(
        topic="submissions.acme", partition=2, offset=5, reason="bad", sha256="ab", tenant="acme"
    )
    assert when(state, item) == []


def test_a_command_of_another_service_is_ignored() -> None:
    assert when(pool(), command(CordonNode(node_id="n1"))) == []


def test_events_of_access_are_restated_when_they_change_something() -> None:
    state = given(ADMISSION)
    events = [
        an_input(POOL, "access"),
        an_input(PoolConfigured(partition=1, pool="other"), "access"),
        an_input(TenantRegistered(tenant="acme", default_pool="main", weight=2), "access"),
    ]
    assert when(state, *events) == [POOL, TenantNoted(tenant="acme", weight=2)]
    assert when(state, *events) == []


def test_a_retired_tenants_jobs_go_on() -> None:
    state = pool(quota(1))
    when(state, submit("j1"), submit("j2"))
    gone = an_input(TenantRetired(tenant="acme"), "access")
    assert when(state, gone) == [TenantNoted(tenant="acme", active=False)]
    assert summarize_jobs(when(state, placed(succeeded("j1")))) == ["job.admitted j2"]


@pytest.mark.process
def test_two_hash_seeds_give_the_same_decisions() -> None:
    first, second = printed_under_two_hash_seeds(SCRIPT)
    assert first == second
    assert len(first.strip()) == 64
