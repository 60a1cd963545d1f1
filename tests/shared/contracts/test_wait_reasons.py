"""Reasons in words, with their numbers."""

from __future__ import annotations

from shared.contracts.wait_reasons import because, held_words


def test_a_reason_has_its_numbers_and_an_unknown_one_is_shown() -> None:
    data = {"reason": "no_capacity", "short_gpus": 2.0, "detail": {"free_gpus": 1.5}}
    assert because(data) == "too few GPUs are free; free gpus 1.5, short gpus 2"
    assert because({"reason": "new_reason"}) == "new reason"
    assert because({}) == "-"


def test_a_job_beyond_the_gpus_of_its_user_names_user_and_numbers() -> None:
    detail = {"user": "ada", "asked_gpus": 2.0, "used_gpus": 3.0, "ahead": 1, "bound_gpus": 4.0}
    assert because({"reason": "user_gpus", "detail": detail}) == (
        "its user's jobs have as many GPUs of the pool as they may at once; user ada,"
        " asked gpus 2, used gpus 3, ahead 1, bound gpus 4"
    )


def test_the_words_of_a_hold_leave_out_times_and_protections() -> None:
    detail = {"free_gpus": 1.0, "protected_until": 1.0, "faster_at": 2.0}
    assert held_words({"reason": "no_capacity", "detail": detail}) == (
        "too few GPUs are free; free gpus 1"
    )
    assert held_words({"reason": "quota", "detail": "of ada"}).endswith("; detail of ada")
