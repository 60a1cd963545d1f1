"""An executor decodes those events alone that change the state of its workers."""

from __future__ import annotations

import pytest

from services.executor.core.consumed import is_consumed


@pytest.mark.parametrize("wire_type", ["job.placed.v1", "job.placed.v2", "node.lost.v1"])
def test_an_event_that_an_executor_folds_is_consumed_in_any_version(wire_type: str) -> None:
    assert is_consumed(wire_type)


@pytest.mark.parametrize("wire_type", ["job.held.v1", "workers.ready.v1", "job.placed"])
def test_another_event_need_not_be_decoded(wire_type: str) -> None:
    assert not is_consumed(wire_type)
