from __future__ import annotations

from services.failslow.core.witnesses import KEPT_S, NODES_KEPT, OPERATOR, Witnesses


def test_measurements_for_one_tenant_agree_with_none_of_its_own() -> None:
    witnesses = Witnesses()
    for at_s in range(5):
        witnesses.note(["n1", "n2"], "red", at_s)
    assert not witnesses.agree(["n1"])
    witnesses.note(["n1"], "blue", 5.0)
    assert witnesses.agree(["n1"]) and not witnesses.agree(["n1", "n2"])
    witnesses.note(["n2"], OPERATOR, 5.0)
    assert witnesses.agree(["n1", "n2"])


def test_an_old_one_counts_no_more_and_a_node_found_well_has_none() -> None:
    witnesses = Witnesses()
    witnesses.note(["n1"], "red", 0.0)
    witnesses.note(["n1"], "blue", KEPT_S + 1)
    assert not witnesses.agree(["n1"])
    witnesses.note(["n1"], "red", KEPT_S + 2)
    witnesses.clear(["n1", "n2"])
    assert not witnesses.agree(["n1"])


def test_no_more_nodes_are_kept_than_the_bound() -> None:
    witnesses = Witnesses()
    witnesses.note((f"n{number}" for number in range(NODES_KEPT + 1)), "red", 0.0)
    assert "n0" not in witnesses.of_node and len(witnesses.of_node) == NODES_KEPT
