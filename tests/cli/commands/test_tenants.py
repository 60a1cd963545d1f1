"""`berth tenants`: a change sends what it names and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from cli.commands import tenants as verbs
from cli.errors import BadInput, NotFound, Refused


class TenantsApi:
    """An API that notes what it is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, dict[str, Any]]] = []

    def get(self, path: str) -> dict[str, Any]:
        if path != "/v1/tenants/ada":
            raise NotFound(path)
        return {"active": True, "default_pool": "gpu", "weight": 2.0, "llm_weight": 1.0}

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(("PATCH", path, body))
        return {"command_id": "c"}

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(("POST", path, body))
        return {"command_id": "c"}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> TenantsApi:
    api = TenantsApi()
    monkeypatch.setattr(verbs, "api", lambda data: api)
    monkeypatch.setattr(verbs, "await_answer", lambda client, receipt: receipt)
    return api


def test_a_quota_changes_in_the_bounds_that_are_named(
    api: TenantsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.quota("ada", guaranteed=0.0)
    verbs.quota("ada", borrow="unlimited", pool="gpu")
    verbs.quota("ada", guaranteed=8.0, borrow="4", spot="unlimited")
    path = "/v1/tenants/ada/quota"
    whole = {"guaranteed_gpus": 8.0, "borrow_gpus": 4.0, "spot_gpus": None}
    assert api.sent == [
        ("PATCH", path, {"guaranteed_gpus": 0.0}),
        ("PATCH", path, {"borrow_gpus": None, "pool": "gpu"}),
        ("POST", path, whole),
    ]
    assert "ada: borrow_gpus: unlimited\n" in capsys.readouterr().out


def test_a_tenant_changes_in_the_settings_that_are_named(api: TenantsApi) -> None:
    verbs.set_("ada", weight=2.0)
    verbs.set_("ada", pool="gpu", llm_weight=0.5)
    sent = [body for _, _, body in api.sent]
    assert sent == [{"weight": 2.0}, {"default_pool": "gpu", "llm_weight": 0.5}]


def test_a_tenant_with_other_settings_is_not_replaced(
    api: TenantsApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "create_topics", lambda tenant, data: [])
    with pytest.raises(Refused, match="exists with default_pool gpu, weight 2.0: ada; `berth ten"):
        verbs.add("ada", pool="local")
    assert api.sent == []
    verbs.add("ada", pool="gpu", weight=2.0)
    verbs.add("bob", pool="local")
    assert [body["tenant"] for _, _, body in api.sent] == ["ada", "bob"]


def test_a_change_without_a_value_or_with_a_wrong_one_is_explained(api: TenantsApi) -> None:
    with pytest.raises(BadInput, match="no bound; --guaranteed, --borrow or --spot is allowed"):
        verbs.quota("ada")
    with pytest.raises(
        BadInput, match="no setting; --pool, --weight, --llm-weight or NAME=VALUE is allowed"
    ):
        verbs.set_("ada")
    rule = "borrow_gpus: many; a number of GPUs or `unlimited` is allowed"
    with pytest.raises(BadInput, match=rule):
        verbs.quota("ada", borrow="many")
    assert api.sent == []
