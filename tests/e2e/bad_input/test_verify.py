"""The stack after all bad input of this folder: its last file in alphabetical order."""

from __future__ import annotations

import hashlib

import pytest

from tests.e2e.stand import Stand

pytestmark = pytest.mark.stack


def test_no_process_has_died_and_all_bytes_are_kept(stand: Stand) -> None:
    assert stand.pids() == stand.pids_at_start
    digests = {place: hashlib.sha256(value).hexdigest() for place, value in stand.sent.items()}
    assert stand.dead_topic() == digests


def test_verify_has_no_violations(stand: Stand) -> None:
    verified = stand.verify()
    assert verified.violations == []
    assert verified.counts["undecodable"] == len(stand.sent)
