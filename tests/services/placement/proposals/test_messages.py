"""Requests and proposals come out of the pipes of a scheduler's process as they went in."""

from __future__ import annotations

import pytest

from services.placement.core.scheduled import request as core
from services.placement.proposals.messages import answer_of, pack_answer, pack_request, request_of
from tests.services.placement.core.lane import job
from tests.services.placement.core.scheduled.pools import FAST, typed


def opened() -> core.ProposalRequest:
    pool = typed()
    pool.run(job("one", 4, gpu_speeds={FAST: 2.0}, walltime_s=100))
    pool.proposes = False
    pool.submit(job("two", 4), job("three", 2, workers=2, spread_speeds={"rack": 0.5}))
    pool.now = pool.state.schedule.until
    pool.wake()
    return core.request_of(pool.state)


def test_a_request_keeps_view_queue_and_memory() -> None:
    request = opened()
    assert request.queue == ("two", "three")
    assert request.memory != "{}"
    assert request_of(pack_request(request)) == request


def test_a_proposal_keeps_its_gpus() -> None:
    answer = core.answer_to(opened())
    assert answer.proposed
    assert answer_of(pack_answer(answer)) == answer


def test_what_is_no_proposal_is_refused() -> None:
    with pytest.raises(ValueError, match="ProposalReady"):
        answer_of(b"hello")
