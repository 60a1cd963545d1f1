"""Keys and passwords of a control plane are known by their hashes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from benchmarks.parts.isolation.of_jobs import HASH_CHARS, hashes_of

SECRET, PUBLIC = "s" * 30, "p" * 30


def test_secrets_count_and_what_a_certificate_shows_does_not(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets" / "certificates"
    secrets.mkdir(parents=True)
    (secrets / "ca.crt").write_text(f"{PUBLIC}\n")
    (secrets / "broker.pem").write_text(f"{PUBLIC}\n{SECRET}\n")
    (tmp_path / "operator.key").write_text("a.short.one\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "access.log").write_text("x" * 30)
    assert hashes_of(tmp_path) == {hashlib.sha256(SECRET.encode()).hexdigest()[:HASH_CHARS]}
