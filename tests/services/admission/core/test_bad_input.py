from __future__ import annotations

from shared.contracts.jobs import CommandAccepted, RejectSubmission
from shared.contracts.nodes import CordonNode
from shared.contracts.rejected import InputRejected
from shared.ledger.decider import Undecodable
from shared.testing.decider import an_input
from tests.services.admission.core.cases import command, pool, when


def test_bytes_of_no_message_are_rejected_where_they_lie() -> None:
    bad = an_input(Undecodable("commands", 0, 7, "data: no JSON", "ab"))
    assert when(pool(), bad) == [
        InputRejected(topic="commands", partition=0, offset=7, reason="data: no JSON", sha256="ab")
    ]


def test_a_submission_that_the_gateway_could_not_read_is_rejected_for_good() -> None:
    submission = RejectSubmission(
        tenant="acme", topic="submissions.acme", partition=2, offset=5, reason="bad", sha256="ab"
    )
    state, item = pool(), command(submission, "c9")
    answer, rejected = when(state, item)
    assert isinstance(answer, CommandAccepted)
    assert (answer.command_id, answer.of) == ("c9", "submissions.acme/2/5")
    assert rejected == InputRejected(
        topic="submissions.acme", partition=2, offset=5, reason="bad", sha256="ab", tenant="acme"
    )
    assert when(state, item) == []


def test_a_command_of_another_reader_is_left_to_it() -> None:
    assert when(pool(), command(CordonNode(node_id="n1"))) == []
