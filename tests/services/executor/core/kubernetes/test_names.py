"""Names in Kubernetes follow from the identity alone."""

from __future__ import annotations

import pytest

from services.executor.core.kubernetes.names import gang_name, is_namespace, pod_name


def test_a_gang_has_one_name_which_kubernetes_takes() -> None:
    first, again, other = (gang_name(f"berth:i:p:0/{n}/0") for n in (1, 1, 2))
    assert first == again != other
    assert is_namespace(pod_name(first, 4095)), "a name of a host, too"


@pytest.mark.parametrize(
    ("name", "is_one"), [("berth-ada", True), ("a.b", False), ("", False), ("a" * 64, False)]
)
def test_a_namespace_is_a_label_of_dns(name: str, is_one: bool) -> None:
    assert is_namespace(name) == is_one
