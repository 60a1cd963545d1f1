"""Addresses of a Postgres server that is reached over TCP with TLS."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

from infra.postgres.server import DATABASE, USER, LoopbackTls


def tls_dsn(data_dir: Path, tls: LoopbackTls) -> str:
    """Return the owner's address with verification of the server's certificate."""
    named = {
        "passfile": str(data_dir.resolve() / "passwords" / USER),
        "sslmode": "verify-full",
        "sslrootcert": str(tls.certificates.resolve() / "ca.crt"),
    }
    return f"postgresql://{USER}@127.0.0.1:{tls.port}/{DATABASE}?{urlencode(named)}"
