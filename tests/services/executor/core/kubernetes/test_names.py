"""Names in Kubernetes follow from the identity alone."""

from __future__ import annotations

import re

import pytest

from services.executor.core.kubernetes.names import (
    LABEL_PATTERN,
    gang_name,
    is_namespace,
    label_value,
    pod_name,
)


def test_a_gang_has_one_name_which_kubernetes_takes() -> None:
    first, again, other = (gang_name(f"berth:i:p:0/{n}/0") for n in (1, 1, 2))
    assert first == again != other
    assert is_namespace(pod_name(first, 4095)), "a name of a host, too"


@pytest.mark.parametrize(
    ("name", "is_one"), [("berth-ada", True), ("a.b", False), ("", False), ("a" * 64, False)]
)
def test_a_namespace_is_a_label_of_dns(name: str, is_one: bool) -> None:
    assert is_namespace(name) == is_one


def test_every_id_has_a_value_of_a_label_of_its_own() -> None:
    ids = ["a", "a" * 63, "a" * 64, "b" + "a" * 63, "a:b", "a_b", ":", "-a", "a.", ":" * 64]
    values = [label_value(text) for text in ids]
    assert values[:2] == ids[:2] and len(set(values)) == len(ids)
    assert all(re.fullmatch(LABEL_PATTERN, value) for value in values)
