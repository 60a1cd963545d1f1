"""A record is read as it was written, and a change names the version that it changes."""

from __future__ import annotations

from dataclasses import replace

from services.executor.core.kubernetes.records import (
    OPEN,
    STARTED,
    new_record,
    record_manifest,
    record_of,
)
from tests.services.executor.core.kubernetes.objects import GANG, IDENTITY_TEXT

OPENED = new_record(IDENTITY_TEXT, "berth-ada", 3, OPEN)


def test_a_record_is_read_as_it_was_written() -> None:
    started = replace(OPENED, decided=STARTED, version="7", uid="u", uids=("a", "b", "c"))
    started = replace(started, nodes=("n1", "n2", "n1"))
    assert record_of(record_manifest(started)) == started
    assert (started.name, started.namespace, started.workers) == (GANG, "berth-ada", 3)


def test_the_annotations_of_a_large_gang_are_within_the_bound_of_the_api() -> None:
    uids = tuple(f"{n:036d}" for n in range(4096))
    nodes = tuple(f"gke-training-a100-pool-{n:08x}-abcd.example" for n in range(4096))
    large = replace(OPENED, workers=4096, decided=STARTED, uids=uids, nodes=nodes)
    annotations = record_manifest(large)["metadata"]["annotations"]
    assert sum(len(name) + len(text) for name, text in annotations.items()) <= 256 * 1024
    assert record_of(record_manifest(large)).uids == uids


def test_a_new_record_has_no_version_and_one_without_a_holder_is_open() -> None:
    manifest = record_manifest(OPENED)
    assert not {"resourceVersion", "uid"} & manifest["metadata"].keys()
    assert record_of({"metadata": {"name": "x"}}).decided == OPEN


def test_the_record_of_a_tenants_pods_has_their_names_by_rank() -> None:
    adopted = new_record(IDENTITY_TEXT, "berth-ada", 2, OPEN, ("b", "a"))
    record = record_of(record_manifest(adopted))
    assert record.is_adopted and [record.pod_of(rank) for rank in (0, 1)] == ["b", "a"]
    assert not OPENED.is_adopted and OPENED.pod_of(1) == f"{GANG}-1"
