"""`berth upgrade status`: each pool with what it holds back, and whether the way back is open."""

from __future__ import annotations

from typing import Any, cast

from cli.commands.pools import early_changes
from cli.commands.upgrade import text_of_state, upgrade_state
from shared.contracts.pools import RELEASE


def row(pool: str, release: int = 0) -> dict[str, object]:
    return {"pool": pool, "release": release, "settings": {"pool": pool, "partition": 0}}


def test_a_pool_of_an_earlier_release_shows_what_it_holds_back() -> None:
    state = upgrade_state([row("old"), row("new", release=RELEASE)])
    assert state["finished"] is False
    old, new = cast("list[dict[str, Any]]", state["pools"])
    assert "rank_changes=False" in old["held"] and new["held"] == []
    assert "way back is open" in text_of_state(False)


def test_an_upgrade_is_finished_once_all_pools_are() -> None:
    assert upgrade_state([row("new", release=RELEASE)])["finished"] is True
    assert upgrade_state([])["finished"] is True
    assert "cannot take over" in text_of_state(True)


def test_a_setting_that_is_held_is_named_where_it_would_change() -> None:
    assert early_changes({}, 0, {"mitigation": "automatic", "rank_ms": 5}) == ["mitigation"]
    assert early_changes({}, 0, {"mitigation": "off"}) == []
    assert early_changes({}, RELEASE, {"mitigation": "automatic"}) == []
