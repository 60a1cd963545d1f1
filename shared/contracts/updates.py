"""Commands that change the settings they name; the decider alone knows the others."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field, field_validator
from pydantic import create_model as create

from shared.contracts.access import RegisterTenant
from shared.contracts.base import VERSION, Command, Model, Name, command
from shared.contracts.endpoints import EndpointSettings, ModelName
from shared.contracts.job_commands import SetQuota
from shared.contracts.pools import PoolConfigured, PoolSettings
from shared.contracts.releases import early_setting, held_settings
from shared.contracts.users import RegisterUser
from shared.contracts.webhooks import WebhookSettings

U = TypeVar("U", bound="Update")
CONDITION: Any = Field(
    None,
    pattern=VERSION,
    description="version of the settings that this is based on; refused if there is another; "
    "absent: no condition",
)


class Update(Command):
    """A change of the fields that it names: absent is unchanged, null is the default."""

    SETTINGS: ClassVar[type[Model]]
    """The declaration of the fields."""
    ABOUT: ClassVar[frozenset[str]]
    """Fields that are no settings: what is changed, and on which condition."""

    def changes(self) -> dict[str, Any]:
        """Return the named settings and their new values, by name."""
        declared = self.SETTINGS.model_fields
        named = {name: getattr(self, name) for name in self.model_fields_set - self.ABOUT}
        return {
            name: declared[name].default if value is None else value
            for name, value in sorted(named.items())
        }


def with_settings(cls: type[U]) -> type[U]:
    """Add the declared settings to a class of updates, each of them optional."""
    fields: dict[str, Any] = {}
    for name, declared in cls.SETTINGS.model_fields.items():
        if name not in cls.model_fields:
            kind: Any = declared.annotation
            for bound in declared.metadata:
                kind = Annotated[kind, bound]
            fields[name] = (kind | None, Field(None, description=declared.description))
    return create(
        cls.__name__, __base__=cls, __module__=cls.__module__, __doc__=cls.__doc__, **fields
    )


@command
@with_settings
class UpdatePool(Update):
    """Change the named settings of a pool; absent: unchanged, null: the default."""

    TYPE: ClassVar[str] = "pool.update.v1"
    OWNER: ClassVar[str] = "access"
    SETTINGS: ClassVar[type[Model]] = PoolSettings
    ABOUT: ClassVar[frozenset[str]] = frozenset({"pool", "if_version", "reason"})
    pool: Name = Field(description="the pool")
    if_version: str | None = CONDITION
    reason: str = Field("", max_length=512, description="why, recorded with the change")

    def early_setting(self, existing: PoolConfigured) -> str | None:
        """Return why a named value cannot be used until the upgrade is finished."""
        held = held_settings(existing, existing.release)
        requested = {name: getattr(self, name) for name in held}
        named = {name: value for name, value in requested.items() if value is not None}
        return early_setting(held, named)

    def changes_of(self, existing: PoolConfigured) -> dict[str, Any]:
        """Return the changes; the default of what the pool holds until then is what it has."""
        changes, held = self.changes(), held_settings(existing, existing.release)
        return {name: held.get(name, value) for name, value in changes.items()}


@command
@with_settings
class UpdateEndpoint(Update):
    """Change the named settings of an LLM endpoint; absent: unchanged, null: the default."""

    TYPE: ClassVar[str] = "endpoint.update.v1"
    OWNER: ClassVar[str] = "access"
    SETTINGS: ClassVar[type[Model]] = EndpointSettings
    ABOUT: ClassVar[frozenset[str]] = frozenset({"endpoint", "if_version"})
    endpoint: ModelName = Field(description="name of the model, as clients send it")
    if_version: str | None = CONDITION


@command
@with_settings
class UpdateTenant(Update):
    """Change the named settings of a tenant; absent: unchanged, null: the default."""

    TYPE: ClassVar[str] = "tenant.update.v1"
    OWNER: ClassVar[str] = "access"
    SETTINGS: ClassVar[type[Model]] = RegisterTenant
    ABOUT: ClassVar[frozenset[str]] = frozenset({"tenant", "if_version"})
    tenant: Name = Field(description="the tenant")
    if_version: str | None = CONDITION
    default_pool: Name | None = Field(None, description="pool of submissions that name none")

    _named = field_validator("default_pool")(lambda value: required(value))


@command
@with_settings
class UpdateQuota(Update):
    """Change the named bounds of a tenant in one pool; absent: unchanged, null: the default."""

    TYPE: ClassVar[str] = "quota.update.v1"
    OWNER: ClassVar[str] = "admission"
    SETTINGS: ClassVar[type[Model]] = SetQuota
    ABOUT: ClassVar[frozenset[str]] = frozenset({"tenant", "if_version"})
    tenant: Name = Field(description="the tenant")
    if_version: str | None = CONDITION
    guaranteed_gpus: float | None = Field(
        None, ge=0, le=1e6, description="GPUs admitted regardless of other tenants"
    )

    _named = field_validator("guaranteed_gpus")(lambda value: required(value))


@command
@with_settings
class UpdateUser(Update):
    """Change the named bounds of a user; absent: unchanged, null: the default."""

    TYPE: ClassVar[str] = "user.update.v1"
    OWNER: ClassVar[str] = "access"
    SETTINGS: ClassVar[type[Model]] = RegisterUser
    ABOUT: ClassVar[frozenset[str]] = frozenset({"tenant", "user", "if_version"})
    tenant: Name = Field(description="the tenant")
    user: Name = Field(description="the user")
    if_version: str | None = CONDITION


@command
@with_settings
class UpdateWebhook(Update):
    """Change the named settings of a webhook; absent: unchanged, null: the default."""

    TYPE: ClassVar[str] = "webhook.update.v1"
    OWNER: ClassVar[str] = "access"
    SETTINGS: ClassVar[type[Model]] = WebhookSettings
    ABOUT: ClassVar[frozenset[str]] = frozenset({"tenant", "name"})
    tenant: Name = Field(description="the tenant")
    name: Name = Field(description="the webhook")

    _named = field_validator("url", "events", check_fields=False)(lambda value: required(value))


def required(value: Any) -> Any:
    """Return a value that was named. Raises ValueError for null: there is no default."""
    if value is None:
        raise ValueError("a value is required: there is no default")
    return value
