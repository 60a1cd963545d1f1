"""An identity provider, and its keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.oidc.key_set import KeySet
from tests.shared.oidc.identity import Provider, provider


@pytest.fixture
def idp(tmp_path: Path) -> Iterator[Provider]:
    with provider(tmp_path) as made:
        yield made


@pytest.fixture
def keys(idp: Provider, tmp_path: Path) -> KeySet:
    return KeySet(idp.url, tmp_path / "ca.crt")
