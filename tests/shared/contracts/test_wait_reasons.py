"""Reasons in words, with their numbers."""

from __future__ import annotations

from shared.contracts.wait_reasons import because, held_words


def test_a_reason_has_its_numbers_and_an_unknown_one_is_shown() -> None:
    data = {"reason": "no_capacity", "short_gpus": 2.0, "detail": {"free_gpus": 1.5}}
    assert because(data) == "too few GPUs are free; free gpus 1.5, short gpus 2"
    assert because({"reason": "new_reason"}) == "new reason"
    assert because({}) == "-"


def test_the_words_of_a_hold_leave_out_times_and_protections() -> None:
    detail = {"free_gpus": 1.0, "protected_until": 1.0, "faster_at": 2.0}
    assert held_words({"reason": "no_capacity", "detail": detail}) == (
        "too few GPUs are free; free gpus 1"
    )
    assert held_words({"reason": "quota", "detail": "of ada"}).endswith("; detail of ada")
