from __future__ import annotations

import pytest

from services.failslow.core.detection.kinds import is_training


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        ("", True),
        ("Train ", True),
        ("step", True),
        ("eval", False),
        ("checkpoint", False),
        ("warmup", False),
    ],
)
def test_only_training_is_compared(kind: str, counts: bool) -> None:
    assert is_training(kind) == counts
