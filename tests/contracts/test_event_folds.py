from __future__ import annotations

import pytest

from services.priority.core.evolve import FOLDS
from shared.contracts.ranking import PolicyDegraded, QueueRanked, ShadowRanked
from tests.contracts.event_folds import assert_folds_every_type_of, assert_folds_take_their_types


def test_a_missing_type_is_found() -> None:
    folds = {kind: fold for kind, fold in FOLDS.items() if kind is not ShadowRanked}
    with pytest.raises(AssertionError, match=r"shadow\.ranked"):
        assert_folds_every_type_of("priority", folds)


def test_a_type_of_another_ledger_is_found() -> None:
    with pytest.raises(AssertionError, match=r"queue\.ranked"):
        assert_folds_every_type_of("failslow", FOLDS)


def test_a_function_beside_the_type_of_another_is_found() -> None:
    with pytest.raises(AssertionError, match="QueueRanked: degrade_policy takes"):
        assert_folds_take_their_types({QueueRanked: FOLDS[PolicyDegraded]})
