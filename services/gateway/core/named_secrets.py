"""Jobs name secrets of their tenant: one that does not exist is refused before the job waits."""

from __future__ import annotations

from collections.abc import Container, Mapping

from services.gateway.core.field_errors import FieldError, InvalidBody, plain
from shared.contracts.registry import AccessView
from shared.contracts.secrets import (
    NAME_RULE,
    REFERENCE,
    RESERVED,
    SECRET_NAME,
    is_reserved,
    secrets_named,
)

TAKEN = f"must not begin with {RESERVED}: Berth keeps webhooks and addresses under such names"
UNKNOWN = "no such secret of tenant {tenant}; `berth secrets set` makes one"


def known_secrets(view: AccessView, tenant: str) -> Container[str] | None:
    """Return the names of the tenant's secrets; None until an upgrade is finished.

    Executors of an earlier release read secrets from files, which the gateway does not see.
    """
    return view.secrets.of(tenant) if view.is_finished else None


def check_secrets(env: Mapping[str, str], known: Container[str], tenant: str) -> None:
    """Raise InvalidBody with each variable that names a secret which the tenant does not have."""
    errors = [
        FieldError(field=f"env.{variable}"[:256], value=plain(REFERENCE + name), rule=rule)
        for variable, name in secrets_named(env).items()
        if (rule := _broken_rule(name, known, tenant))
    ]
    if errors:
        raise InvalidBody(errors)


def _broken_rule(name: str, known: Container[str], tenant: str) -> str:
    if not SECRET_NAME.fullmatch(name):
        return f"name of a secret: {NAME_RULE}"
    if is_reserved(name):
        return TAKEN
    return "" if name in known else UNKNOWN.format(tenant=tenant)
