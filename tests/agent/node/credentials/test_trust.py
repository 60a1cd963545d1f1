"""The CA of an installation ends, and nodes trust the next one before it does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from berth_agent.node.connection.http import Connection, RequestFailed, parse_address
from berth_agent.node.credentials import trust
from infra.security.certificates import CA_DAYS, make
from tests.serving import Quiet, serving_tls

NOW = datetime.now(UTC)  # noqa: TID251


class Answering(Quiet):
    def do_POST(self) -> None:
        self.answer(200, b"{}")


def certificate(folder: Path, days_ago: float) -> str:
    """Make or renew the certificates of a folder at that time; return that of the CA."""
    make(folder, now=NOW - timedelta(days=days_ago))
    return (folder / "ca.crt").read_text()


def test_a_node_outlives_the_end_of_the_ca_that_it_joined_with(tmp_path: Path) -> None:
    first = certificate(tmp_path, CA_DAYS + 1)
    second = certificate(tmp_path, CA_DAYS / 3)
    certificate(tmp_path, 0)
    assert first != second == (tmp_path / "ca.crt").read_text()
    with serving_tls(tmp_path, Answering) as url:
        outdated = Connection(parse_address(url), trust.context_of(first), "")
        with pytest.raises(RequestFailed, match="expired"):
            outdated.exchange("/", {}, 10.0)
        outdated.close()
        merged = Connection(
            parse_address(url), trust.context_of(trust.with_newer(first, second)), ""
        )
        merged.exchange("/", {}, 10.0)
        merged.close()


def test_what_the_control_plane_names_comes_first_and_a_few_before_are_kept(tmp_path: Path) -> None:
    made = [certificate(tmp_path / str(number), 0) for number in range(6)]
    pem = made[0]
    for newer in made[1:]:
        pem = trust.with_newer(pem, newer)
        assert trust.with_newer(pem, newer) == pem
    assert trust.CERTIFICATE.findall(pem) == [
        block for one in reversed(made[2:]) for block in trust.CERTIFICATE.findall(one)
    ]


def test_a_bundle_of_many_drops_none_of_its_own_nor_the_present_one(tmp_path: Path) -> None:
    present, *many = (certificate(tmp_path / str(number), 0) for number in range(6))
    pem = trust.with_newer(present, "".join(many))
    assert all(one.strip() in pem for one in (present, *many))


@pytest.mark.parametrize("newer", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_what_is_no_certificate_changes_nothing(tmp_path: Path, newer: str) -> None:
    pem = certificate(tmp_path, 0)
    assert trust.with_newer(pem, newer) == pem
    assert trust.with_newer("", pem) == "", "the CAs of the system are trusted"


def test_the_end_is_that_of_the_last_certificate_and_a_problem_in_time(tmp_path: Path) -> None:
    pem = certificate(tmp_path / "a", 100)
    pem += certificate(tmp_path / "b", 0)
    end_ms = trust.end_ms(trust.context_of(pem))
    assert end_ms is not None
    left_ms = end_ms - NOW.timestamp() * 1000
    assert abs(left_ms - CA_DAYS * trust.DAY_MS) < trust.DAY_MS
    assert trust.problem(end_ms, end_ms - trust.WARNED_MS - 1) == ""
    assert "ends in 29 days; `berth-agent addresses --ca FILE`" in trust.problem(
        end_ms, end_ms - 30 * trust.DAY_MS + 1
    )
    assert "has ended" in trust.problem(end_ms, end_ms + 1)
    assert trust.problem(None, 0) == ""
