"""The bounds of a key or token within its tenant, and the user that its jobs belong to."""

from __future__ import annotations

import hashlib
from collections.abc import Container

from services.gateway.core.field_errors import FieldError
from services.gateway.core.submission import Sender
from shared.contracts.base import NAME
from shared.contracts.bounds import MOST_GPUS, UserBounds, find_excess
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import UNKNOWN_USER
from shared.contracts.registry import Bearer
from shared.contracts.secrets import MAIL


class NotPermitted(Exception):
    """A submission, or a change of a job, exceeds what the key or token of its sender permits."""

    def __init__(self, error: FieldError) -> None:
        self.error = error
        super().__init__(str(error))


def bounds_of_bearer(bearer: Bearer) -> UserBounds:
    """Return the bounds of a key alone, within which those of tenant and user hold as well."""
    return UserBounds(
        pools=bearer.pools,
        highest_class=bearer.highest_class or "system",
        max_job_gpus=MOST_GPUS if bearer.max_job_gpus is None else bearer.max_job_gpus,
    )


def user_of(bearer: Bearer) -> str | None:
    """Return the user that the bearer is; None for a key that several people may use.

    The subject of a token that is no valid name is one by its hash.
    """
    if bearer.expires_s is None or bearer.tenant is None:
        return bearer.user
    if NAME.fullmatch(bearer.key_id):
        return bearer.key_id
    return f"u-{hashlib.sha256(bearer.key_id.encode()).hexdigest()[:16]}"


def check_owner(bearer: Bearer, owner: str) -> None:
    """Raise NotPermitted for a job of another user than the one that the bearer is."""
    user = user_of(bearer)
    if bearer.tenant is None or user in (None, owner):
        return
    rule = (
        f"must be {user!r}, the user of {bearer.principal}; a key of the tenant without a user, or"
        " an operator, may change jobs of every user"
    )
    raise NotPermitted(FieldError(field="user", value=owner, rule=rule))


def check_claim(sender: Sender, user: str, why: str) -> None:
    """Raise NotPermitted for a user that is named but not authenticated, where it must be."""
    rule = ""
    if sender.bounds.users == "authenticated" and user != UNKNOWN_USER:
        rule = f"must be absent: {why}, and the tenant has users=authenticated"
    elif user in sender.users:
        rule = f"must be absent: {why}, and {user} is a registered user with keys of its own"
    if rule:
        raise NotPermitted(FieldError(field="user", value=user, rule=rule))


def check_mails(command: SubmitJob, user: str | None, addressed: Container[str]) -> None:
    """Raise NotPermitted for mails where no user is authenticated, or it has no address.

    `addressed` are the names of the tenant's secrets.
    """
    named = ",".join(command.spec.notify)
    if named and user is None:
        rule = "must be empty: mails go to an authenticated user, and the sender is none"
        raise NotPermitted(FieldError(field="notify", value=named, rule=rule))
    if named and MAIL + str(user) not in addressed:
        rule = f"must be empty: {user} has no address; `berth users mail {user} ADDRESS` sets it"
        raise NotPermitted(FieldError(field="notify", value=named, rule=rule))


def permitted(command: SubmitJob, bearer: Bearer, sender: Sender) -> SubmitJob:
    """Return the submission with the user that its bearer is; `sender` is its tenant.

    Raises NotPermitted.
    """
    spec = command.spec
    remedy = f"of {bearer.principal}; an administrator makes another key (`berth keys create`)"
    for pool in spec.pools or (command.pool,):
        excess = find_excess(bounds_of_bearer(bearer), spec, pool, by_operator=False)
        if excess is None:
            continue
        rule = f"{excess.rule} by the bounds {remedy}"
        raise NotPermitted(FieldError(field=excess.field, value=excess.value, rule=rule))
    user = user_of(bearer)
    if user is None and bearer.tenant is not None:
        check_claim(sender, spec.user, f"{bearer.principal} has no user")
    if user is None or user == spec.user:
        return command
    if "user" in spec.model_fields_set:
        rule = f"must be absent or {user!r}, the user {remedy}"
        raise NotPermitted(FieldError(field="user", value=spec.user, rule=rule))
    return command.model_copy(update={"spec": spec.model_copy(update={"user": user})})
