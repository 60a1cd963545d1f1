"""Certificates are renewed while a stack runs, with the names that they have."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from infra.security.certificates import SERVERS, CertificateOptions, ends, make
from infra.supervisor.renewal import renew
from tests.infra.security.test_certificates import talk
from tests.patience import until


def make_old(folder: Path) -> None:
    """Make certificates that have nine days left, for an address of the network as well."""
    made_at = datetime.fromtimestamp(time.time(), UTC) - timedelta(days=21)
    make(folder, CertificateOptions(hosts=("10.0.0.5",)), now=made_at)


def test_what_is_near_its_end_is_renewed_once_and_keeps_its_names(tmp_path: Path) -> None:
    make_old(tmp_path)
    lines: list[str] = []
    assert renew(tmp_path, lines.append) == list(SERVERS)
    assert renew(tmp_path, lines.append) == []
    talk(tmp_path, "api", "10.0.0.5", tmp_path / "ca.crt")
    assert len(lines) == 1 and "renewed: broker, api, postgres" in lines[0]


def test_a_failure_is_reported_and_does_not_end_the_program(tmp_path: Path) -> None:
    make_old(tmp_path)
    (tmp_path / "ca.key").unlink()
    lines: list[str] = []
    assert renew(tmp_path, lines.append) == []
    assert len(lines) == 1 and "not renewed" in lines[0] and "ca.key is missing" in lines[0]


@pytest.mark.process
async def test_the_program_renews_at_its_start_and_goes_on(tmp_path: Path) -> None:
    make_old(tmp_path)
    before = ends(tmp_path)["api"]
    command = [sys.executable, "-P", "-m", "infra.supervisor.renewal", str(tmp_path)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.getcwd()}) as program:
        try:
            await until(lambda: ends(tmp_path)["api"] > before)
            assert program.poll() is None
        finally:
            program.terminate()
