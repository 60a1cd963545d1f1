"""After all other tests of this folder the ledgers are sound."""

from __future__ import annotations

import pytest

from tests.e2e.stand import Stand

pytestmark = pytest.mark.stack


def test_the_ledgers_are_sound(stand: Stand) -> None:
    assert stand.verify().violations == []
