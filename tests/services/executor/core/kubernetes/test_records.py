"""A record is read as it was written, and a change names the version that it changes."""

from __future__ import annotations

from services.executor.core.kubernetes.records import OPEN, STARTED, record_manifest, record_of
from tests.services.executor.core.kubernetes.objects import GANG, IDENTITY_TEXT


def test_a_record_is_read_as_it_was_written() -> None:
    manifest = record_manifest(IDENTITY_TEXT, "berth-ada", 3, STARTED, "7")
    record = record_of(manifest)
    assert (record.name, record.identity, record.workers) == (GANG, IDENTITY_TEXT, 3)
    assert (record.namespace, record.decided, record.version) == ("berth-ada", STARTED, "7")


def test_a_new_record_has_no_version_and_one_without_a_holder_is_open() -> None:
    manifest = record_manifest(IDENTITY_TEXT, "berth-ada", 3, OPEN)
    assert "resourceVersion" not in manifest["metadata"]
    assert record_of({"metadata": {"name": "x"}}).decided == OPEN
