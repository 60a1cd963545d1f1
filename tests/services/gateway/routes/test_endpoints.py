"""A tenant sees an endpoint without the addresses of its engines and its other tenants."""

from __future__ import annotations

import pytest

from services.gateway.routes.endpoints import endpoint_row
from shared.contracts.endpoints import EndpointConfigured, Upstream
from shared.contracts.settings_version import version_of

CHAT = EndpointConfigured(
    endpoint="chat",
    partition=1,
    upstreams=(Upstream(name="a", url="http://a:1", key="secret"),),
    tenants=("ada",),
)
ROW = {"endpoint": "chat", "partition": 1, "settings": CHAT.model_dump(mode="json")}


@pytest.mark.parametrize(("tenant", "is_open"), [("ada", True), ("bob", False)])
def test_a_tenant_sees_less(tenant: str, is_open: bool) -> None:
    row = endpoint_row(ROW, tenant)
    assert row["open"] == is_open
    assert row["version"] == version_of(CHAT)
    assert "tenants" not in str(row["settings"]) and "http://a:1" not in str(row)
    assert "'key': 'secret'" in str(row)


def test_an_operator_sees_all() -> None:
    row = endpoint_row(ROW, None)
    assert row["settings"] == CHAT.model_dump(mode="json", exclude={"partition"})
    assert row["open"]
