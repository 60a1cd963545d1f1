"""Keys have tenants as their roles need them, and are never made anew."""

from __future__ import annotations

from services.access.core.configuration import decide_configuration
from services.access.core.outcomes import Denial, Grant
from shared.contracts.access import CreateKey, KeyCreated, KeyRevoked, RevokeKey, TenantRegistered
from shared.contracts.registry import AccessView

SHA256 = "ab" * 32


def test_a_viewers_key_may_serve_all_tenants() -> None:
    command = CreateKey(key_id="k1", sha256=SHA256, role="viewer")
    event = KeyCreated(key_id="k1", sha256=SHA256, role="viewer")
    assert decide_configuration(AccessView(), 4, command) == Grant("k1", event)


def test_a_submitter_has_one_tenant_and_an_operator_none() -> None:
    view = AccessView()
    view.apply(TenantRegistered(tenant="ada", default_pool="main"))
    cases = {
        ("submitter", None): "tenant_required",
        ("submitter", "bob"): "unknown_tenant",
        ("operator", "ada"): "tenant_not_allowed",
        ("admin", "ada"): "tenant_not_allowed",
    }
    for (role, tenant), reason in cases.items():
        command = CreateKey.model_validate(
            {"key_id": "k1", "sha256": SHA256, "role": role, "tenant": tenant}
        )
        outcome = decide_configuration(view, 4, command)
        assert isinstance(outcome, Denial) and outcome.reason == reason
    submitter = CreateKey(key_id="k1", sha256=SHA256, role="submitter", tenant="ada")
    assert isinstance(decide_configuration(view, 4, submitter), Grant)


def test_the_id_of_a_key_names_one_secret_for_ever() -> None:
    view = AccessView()
    first = KeyCreated(key_id="k1", sha256=SHA256, role="viewer")
    view.apply(first)
    same = CreateKey(key_id="k1", sha256=SHA256, role="viewer")
    assert decide_configuration(view, 4, same) == Grant("k1", None)
    other = CreateKey(key_id="k1", sha256="cd" * 32, role="viewer")
    denied = decide_configuration(view, 4, other)
    assert isinstance(denied, Denial) and denied.reason == "key_exists"
    view.apply(KeyRevoked(key_id="k1"))
    denied = decide_configuration(view, 4, same)
    assert isinstance(denied, Denial) and denied.reason == "key_revoked"
    assert decide_configuration(view, 4, RevokeKey(key_id="k1")) == Grant("k1", None)
    unknown = decide_configuration(view, 4, RevokeKey(key_id="k2"))
    assert isinstance(unknown, Denial) and unknown.reason == "unknown_key"
