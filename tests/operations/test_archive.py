"""The page of the archive is executed as it stands, on a Kafka with users."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.broker import kafka
from infra.supervisor import supervise
from tests import s3_server
from tests.operations.test_runbooks import PAGES, runbook_environment
from tests.pages import blocks, run_shell

pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="berth-archive-", ignore_cleanup_errors=True) as root:
        Path(root).chmod(0o755)
        folder = Path(root) / "data"
        try:
            yield folder
        finally:
            for data in Path(root).glob("data*"):
                supervise.down(data)


@pytest.fixture(params=["folder", "s3"])
def archive(home: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "folder":
        yield str(home.parent / "archive")
        return
    credentials = home.parent / "credentials"
    credentials.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    with s3_server.running("berth-archives") as endpoint:
        yield f"s3://berth-archives/one?endpoint={endpoint}&credentials={credentials}"


def test_the_page_does_what_it_says(home: Path, archive: str) -> None:
    """In S3 up to the rebuild from both tiers, which a backup reads as the rebuild does."""
    page = (PAGES / "archive.md").read_text()
    commands = blocks(page.partition("## Histories")[0] if "s3:" in archive else page)
    assert len(commands) == (5 if "s3:" in archive else 7)
    variables = {"ARCHIVE": archive, "BACKUP": str(home.parent / "backup")}
    run_shell("\n".join(commands), runbook_environment(home) | variables, home.parent)
