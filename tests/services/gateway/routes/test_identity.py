"""The bearer of a key, over HTTP."""

from __future__ import annotations

import pytest

from tests.services.gateway.stack import Stack

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("key", "role", "tenant"), [("ada", "submitter", "ada"), ("root", "admin", None)]
)
async def test_a_bearer_reads_its_principal_role_and_tenant(
    stack: Stack, key: str, role: str, tenant: str | None
) -> None:
    status, bearer, _ = await stack.call("GET", "/v1/whoami", key=key)
    assert status == 200
    installation = bearer.pop("installation")
    assert len(installation) == 12
    may = bearer.pop("may")
    if tenant is None:
        assert may is None
    else:
        assert (may["submit"], may["pools"]) == (True, ["main", "side"])
        assert (may["highest_class"], may["max_key_streams"]) == ("system", 16)
    assert bearer == {
        "principal": f"key:{key}-key",
        "role": role,
        "tenant": tenant,
        "user": None,
        "models": [],
        "expires_at": None,
    }


async def test_without_a_valid_key_there_is_no_answer(stack: Stack) -> None:
    assert (await stack.call("GET", "/v1/whoami", key=""))[0] == 401
