"""A certificate that is not accepted: the error says what to do on the node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from berth_agent.node.connection.http import Connection, RequestFailed, parse_address, tls_context
from infra.security.certificates import make
from tests.serving import Quiet, serving_tls

NOW = datetime.now(UTC)  # noqa: TID251


@contextmanager
def a_server(folder: Path, made_at: datetime) -> Iterator[str]:
    """Serve TLS with a certificate that was made at that time; yield the base URL."""
    make(folder, now=made_at)
    with serving_tls(folder, Quiet) as url:
        yield url


def refusal(url: str, ca: Path | None) -> str:
    connection = Connection(parse_address(url), tls_context(str(ca) if ca else None), "")
    with pytest.raises(RequestFailed) as failed:
        connection.exchange("/", {}, 10.0)
    connection.close()
    return str(failed.value)


def test_a_ca_that_is_missing_or_of_another_installation_gives_the_flag(tmp_path: Path) -> None:
    make(tmp_path / "other")
    with a_server(tmp_path / "mine", NOW) as url:
        for ca in (None, tmp_path / "other" / "ca.crt"):
            assert "`berth-agent join ... --ca FILE`" in refusal(url, ca)


@pytest.mark.parametrize("days", [3650, -3650])
def test_a_certificate_of_another_time_names_the_clock_of_the_node(
    tmp_path: Path, days: int
) -> None:
    with a_server(tmp_path, NOW + timedelta(days=days)) as url:
        assert f"the clock of this node says {NOW:%Y-}" in refusal(url, tmp_path / "ca.crt")
