from __future__ import annotations

from pathlib import Path

import pytest

from infra.security import certificates


@pytest.fixture(scope="session")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an installation's certificates."""
    folder = tmp_path_factory.mktemp("pems")
    certificates.make(folder)
    return folder
