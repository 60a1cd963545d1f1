from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared.bus.archive.archives import Installation


@pytest.fixture
def site(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "archive")
