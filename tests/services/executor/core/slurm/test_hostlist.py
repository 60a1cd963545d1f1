"""Lists of hosts and indices, as Slurm abbreviates them."""

from __future__ import annotations

import pytest

from services.executor.core.slurm.hostlist import expand_hosts, expand_indices


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", ()),
        ("g1", ("g1",)),
        ("g[1-3,07],h", ("g1", "g2", "g3", "g07", "h")),
        ("g[08-10]-ib,g12", ("g08-ib", "g09-ib", "g10-ib", "g12")),
        ("a,b[1],c", ("a", "b1", "c")),
    ],
)
def test_a_list_of_hosts_is_expanded_in_its_order(text: str, hosts: tuple[str, ...]) -> None:
    assert expand_hosts(text) == hosts


def test_indices_are_expanded() -> None:
    assert expand_indices("0-2,5") == (0, 1, 2, 5)
    assert expand_indices("N/A") == ()
