"""Derived ids are stable: they stand in ledgers."""

from __future__ import annotations

from shared.contracts.identity import derive_command_id, derive_job_id


def test_a_repeated_submission_has_the_same_job_id() -> None:
    assert derive_job_id("red", "main", "key-1") == derive_job_id("red", "main", "key-1")


def test_tenant_pool_and_key_are_parts_of_a_job_id() -> None:
    ids = {
        derive_job_id("red", "main", "key-1"),
        derive_job_id("blue", "main", "key-1"),
        derive_job_id("red", "other", "key-1"),
        derive_job_id("red", "main", "key-2"),
    }
    assert len(ids) == 4


def test_a_command_id_is_that_of_its_record() -> None:
    first = derive_command_id("submissions.red", 0, 7)
    assert first == derive_command_id("submissions.red", 0, 7)
    assert first != derive_command_id("submissions.red", 0, 8)
    assert first != derive_command_id("submissions.red", 1, 7)


def test_ids_of_recorded_ledgers_do_not_change() -> None:
    assert derive_job_id("red", "main", "key-1") == "418b7802-e6a8-5d7f-9bcb-534e483ca288"
    assert derive_command_id("submissions.red", 0, 7) == "098bb85b-f95c-5545-b99b-582316f3ad35"
