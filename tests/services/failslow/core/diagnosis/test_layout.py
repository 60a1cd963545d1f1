"""The groups of a layout: their ranks, and which of them are peers."""

from __future__ import annotations

from services.failslow.core.diagnosis.layout import Layout, peers


def test_ranks_of_a_small_layout() -> None:
    layout = Layout(tp=2, dp=2, pp=2)
    by_axis = {
        axis: [g.ranks for g in layout.groups() if g.axis == axis] for axis in ("tp", "dp", "pp")
    }
    assert by_axis["tp"] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert by_axis["dp"] == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert by_axis["pp"] == [(0, 4), (1, 5), (2, 6), (3, 7)]


def test_each_rank_is_in_one_group_of_each_axis() -> None:
    layout = Layout(4, 3, 2)
    for axis in ("tp", "dp", "pp"):
        ranks = [rank for group in layout.groups() if group.axis == axis for rank in group.ranks]
        assert sorted(ranks) == list(range(layout.size))


def test_groups_of_one_rank_are_left_out() -> None:
    assert {group.axis for group in Layout(1, 4, 1).groups()} == {"dp"}


def test_peers_have_the_same_stage() -> None:
    groups = Layout(2, 2, 2).groups()
    assert [peer.ranks for peer in peers(groups, groups[0])] == [(0, 1), (2, 3)]
