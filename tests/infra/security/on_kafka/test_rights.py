"""The table of rights, as it is applied to the guarded broker."""

from __future__ import annotations

import pytest
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
)

from infra.broker import topics
from infra.security import acls, kafka_users, rights
from infra.security.rights import Grant
from tests.infra.security.on_kafka.guarded_broker import MARKS, TENANTS, UNPRIVILEGED, Guarded

pytestmark = MARKS


def test_applying_the_table_again_keeps_its_rights_and_removes_all_others(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    foreign = Grant("projector", "write", "topic", "placement")
    try:
        acls._add(admin, [foreign])
        acls.set_passwords(admin, {"dismissed": kafka_users.new_password()})
        assert foreign in acls.grants(admin)
        topics.secure(guarded.root, guarded.folder / "secrets")
        assert acls.grants(admin) == guarded.grants
        assert "dismissed" not in acls.scram_users(admin)
        assert {UNPRIVILEGED, *map(rights.TENANT.__add__, TENANTS)} < set(acls.scram_users(admin))
    finally:
        admin.close()


def test_a_right_that_the_table_cannot_express_stops_its_application(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    pattern = ResourcePattern(ResourceType.TOPIC, "placement")
    odd = ACL("User:admission", "10.0.0.1", ACLOperation.WRITE, ACLPermissionType.ALLOW, pattern)
    try:
        admin.create_acls([odd])
        with pytest.raises(acls.NotApplied, match=r"none of Berth's.*site\.\*"):
            topics.secure(guarded.root, guarded.folder / "secrets")
    finally:
        admin.delete_acls([_exactly(odd)])
        admin.close()


def _exactly(acl: ACL) -> object:
    pattern = acl.resource_pattern
    resource = ResourcePatternFilter(
        pattern.resource_type, pattern.resource_name, pattern.pattern_type
    )
    return ACLFilter(acl.principal, acl.host, acl.operation, acl.permission_type, resource)


def test_a_password_is_hashed_in_8192_rounds(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    try:
        users = admin.describe_user_scram_credentials()
    finally:
        admin.close()
    mechanisms = {
        (info["mechanism"], info["iterations"])
        for user in users.values()
        for info in user["credential_infos"]
    }
    assert mechanisms == {(ScramMechanism.SCRAM_SHA_512, 8192)}
