from __future__ import annotations

from shared.contracts.admission import ArrayAccepted, ArrayCancelRequested, JobAdmitted
from shared.contracts.job_spec import JobSpec
from tests.services.admission.core.cases import NOW, pool

SPEC = JobSpec(name="sweep")
ACCEPTED = ArrayAccepted(job_id="a", tenant="acme", array_size=2, spec=SPEC, digest="ab" * 5)
CANCEL = ArrayCancelRequested(job_id="a", tenant="acme", command_id="c1", reason="wrong data")


def admitted(index: int) -> JobAdmitted:
    return JobAdmitted(
        job_id=f"a.{index}", tenant="acme", submitted_at=NOW, array_index=index, spec=SPEC
    )


def test_an_accepted_array_expands_until_its_last_job_exists() -> None:
    assert list(pool(ACCEPTED, admitted(0)).expanding) == ["a"]
    assert list(pool(ACCEPTED, admitted(0), admitted(1)).expanding) == []


def test_a_cancelled_array_stops_expanding_and_cancels_its_jobs() -> None:
    state = pool(ACCEPTED, admitted(0), CANCEL)
    array = state.arrays["a"]
    assert (list(state.expanding), list(state.cancelling)) == ([], ["a"])
    assert (array.size, array.remaining, array.cancelled_jobs) == (1, 1, 1)
    assert array.cancel_reason == "wrong data"
    assert "c1" in state.answered


def test_an_array_cancelled_before_its_first_job_has_ended() -> None:
    state = pool(ACCEPTED, CANCEL)
    ended = state.ended.get("a")
    assert ended is not None
    assert ended.outcome == "cancelled"
    assert list(state.pending_answers) == ["c1"]
