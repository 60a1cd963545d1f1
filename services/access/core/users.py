"""The outcome of each command about users of tenants."""

from __future__ import annotations

from services.access.core.outcomes import Denial, Grant, Outcome, deny_tenant, deny_version
from shared.contracts.access import KeyRevoked
from shared.contracts.bounds import UserBounds
from shared.contracts.job_spec import UNKNOWN_USER
from shared.contracts.registry import AccessView
from shared.contracts.secrets import MAIL, SecretDeleted
from shared.contracts.updates import UpdateUser
from shared.contracts.users import MAX_USERS, DeleteUser, RegisterUser, UserDeleted, UserRegistered

UserCommand = RegisterUser | UpdateUser | DeleteUser


def decide_user(view: AccessView, command: UserCommand) -> Outcome:
    match command:
        case RegisterUser():
            return register_user(view, command)
        case UpdateUser():
            return update_user(view, command)
        case DeleteUser():
            return delete_user(view, command)


def register_user(view: AccessView, command: RegisterUser) -> Outcome:
    of, tenant, user = _of(command), command.tenant, command.user
    if not view.is_active(tenant):
        return deny_tenant(of, tenant)
    if user == UNKNOWN_USER:
        detail = f"user: {user!r}: is that of jobs that name none; another name is allowed"
        return Denial(of, "name_reserved", detail)
    bounds = UserBounds(**{name: getattr(command, name) for name in UserBounds.model_fields})
    event = UserRegistered(tenant=tenant, user=user, bounds=bounds)
    existing = view.users.get(tenant, user)
    if existing is not None and existing != event:
        detail = f"user: {user!r}: user exists; `berth users set` changes it"
        return Denial(of, "user_exists", detail)
    if existing is None and len(view.users.of(tenant)) >= MAX_USERS:
        detail = f"user: {user!r}: {MAX_USERS} users per tenant are allowed"
        return Denial(of, "too_many_users", detail)
    return _deny_pools(view, of, bounds) or Grant(of, None if existing else event)


def update_user(view: AccessView, command: UpdateUser) -> Outcome:
    of, existing = _of(command), view.users.get(command.tenant, command.user)
    if existing is None:
        return _deny_unknown(command)
    bounds = existing.bounds.model_copy(update=command.changes())
    if bounds == existing.bounds:
        return Grant(of, None)
    denial = deny_version("user", of, existing, command.if_version)
    changed = existing.model_copy(update={"bounds": bounds})
    return denial or _deny_pools(view, of, bounds) or Grant(of, changed)


def _deny_pools(view: AccessView, of: str, bounds: UserBounds) -> Denial | None:
    unknown = next((name for name in bounds.pools if name not in view.pools), None)
    return Denial(of, "unknown_pool", f"pools: {unknown!r}: no such pool") if unknown else None


def delete_user(view: AccessView, command: DeleteUser) -> Outcome:
    """Delete a user, its keys and its address in one record; any of them may be all there is."""
    tenant, user = command.tenant, command.user
    keys, address = view.keys_of(tenant, user), MAIL + user
    is_stored = view.secrets.get(tenant, address) is not None
    if view.users.get(tenant, user) is None and not keys and not is_stored:
        return _deny_unknown(command)
    others = (
        *(KeyRevoked(key_id=key.key_id) for key in keys),
        *((SecretDeleted(tenant=tenant, name=address),) if is_stored else ()),
    )
    return Grant(_of(command), UserDeleted(tenant=tenant, user=user), others)


def _of(command: UserCommand) -> str:
    return f"{command.tenant}/{command.user}"


def _deny_unknown(command: UserCommand) -> Denial:
    rule = f"no such user of {command.tenant}; `berth users create` registers one"
    return Denial(_of(command), "unknown_user", f"user: {command.user!r}: {rule}")
