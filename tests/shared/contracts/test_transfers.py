"""The id of a job in another pool follows from tenant, pool and the id before."""

from __future__ import annotations

from shared.contracts.transfers import transferred_job_id


def test_a_transfer_that_is_repeated_makes_the_same_id_and_any_other_one_another() -> None:
    job_id = transferred_job_id("red", "b", "j")
    assert job_id == transferred_job_id("red", "b", "j")
    others = {
        transferred_job_id("red", "b", "k"),
        transferred_job_id("red", "c", "j"),
        transferred_job_id("blue", "b", "j"),
        transferred_job_id("red", "b", job_id),
    }
    assert len({job_id, *others}) == 5
