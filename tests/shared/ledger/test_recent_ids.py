from __future__ import annotations

import pickle

from shared.ledger.recent_ids import RecentIds


def test_an_added_id_is_present() -> None:
    ids = RecentIds()
    ids.add("c1")
    assert "c1" in ids
    assert "c2" not in ids
    assert 7 not in ids


def test_only_the_last_ids_are_kept() -> None:
    ids = RecentIds(capacity=2)
    for id in ("c1", "c2", "c2", "c3"):
        ids.add(id)
    assert [id in ids for id in ("c1", "c2", "c3")] == [False, True, True]


def test_recent_ids_survive_a_snapshot() -> None:
    ids = RecentIds()
    ids.add("c1")
    assert pickle.loads(pickle.dumps(ids)) == ids
