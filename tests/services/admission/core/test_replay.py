from __future__ import annotations

from shared.testing.hash_seeds import printed_under_two_hash_seeds

SCRIPT = "from tests.services.admission.core.history import digest; print(digest())"


def test_two_hash_seeds_give_the_same_decisions() -> None:
    first, second = printed_under_two_hash_seeds(SCRIPT)
    assert first == second
    assert len(first.strip()) == 64
