"""The manifest of a bundle: its name is that of its content."""

from __future__ import annotations

import pytest

from shared.contracts.bundles import MAX_PARTS, PART_BYTES, Manifest

SHA256 = "0" * 64


def test_the_name_is_that_of_the_bytes_that_clients_and_agents_hash() -> None:
    manifest = Manifest(parts=(SHA256,), size_bytes=7)
    assert manifest.content == f'{{"parts":["{SHA256}"],"size_bytes":7}}'.encode()
    assert manifest.bundle.startswith("sha256:") and len(manifest.bundle) == 7 + 64


@pytest.mark.parametrize(
    ("parts", "size_bytes", "is_right"),
    [
        (1, 1, True),
        (1, PART_BYTES, True),
        (1, PART_BYTES + 1, False),
        (2, PART_BYTES, False),
        (2, PART_BYTES + 1, True),
        (MAX_PARTS, MAX_PARTS * PART_BYTES, True),
        (MAX_PARTS, MAX_PARTS * PART_BYTES + 1, False),
    ],
)
def test_all_parts_but_the_last_are_full(parts: int, size_bytes: int, is_right: bool) -> None:
    names = tuple(f"{number:064x}" for number in range(parts))
    assert (Manifest(parts=names, size_bytes=size_bytes).fault() == "") == is_right


def test_a_part_that_occurs_twice_is_full() -> None:
    parts = (SHA256, SHA256)
    assert Manifest(parts=parts, size_bytes=2 * PART_BYTES).fault() == ""
    fault = Manifest(parts=parts, size_bytes=PART_BYTES + 1).fault()
    assert fault == "size_bytes: 1048577: 2 parts have 2097152, as the last part occurs before"
