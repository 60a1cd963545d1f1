from __future__ import annotations

import pytest

from shared.contracts.jobs import CommandAccepted, RejectSubmission
from shared.contracts.nodes import CordonNode
from shared.contracts.rejected import InputRejected
from shared.ledger.decider import Undecodable
from shared.testing.decider import an_input
from shared.testing.hash_seeds import printed_under_two_hash_seeds
from tests.services.admission.core.cases import command, pool, when

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


@pytest.mark.process
def test_two_hash_seeds_give_the_same_decisions() -> None:
    first, second = printed_under_two_hash_seeds(SCRIPT)
    assert first == second
    assert len(first.strip()) == 64
