"""The objects that `berth apply` declares, as the installation has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from cli.api.answers import items
from cli.api.http import Api, Json, part
from cli.errors import NotFound
from cli.input.manifest import Declared


@dataclass(frozen=True, slots=True)
class Present:
    """The settings of an object that exists; `version` is empty where its kind has none."""

    settings: Json
    version: str = ""


class Installation:
    """Reads each list of the API once."""

    def __init__(self, client: Api) -> None:
        self._client = client
        self._read: dict[tuple[str, str | None], Json | None] = {}

    def find(self, declared: Declared) -> Present | None:
        """Return the object that is declared as it is now; None for a new one."""
        match declared.kind:
            case "pool" | "endpoint" as kind:
                return self._configured(kind, declared.name)
            case "tenant":
                row = self._get(f"/v1/tenants/{part(declared.name)}")
                if row is None or not row["active"]:
                    return None
                return Present(row | cast("Json", row["bounds"]), str(row["version"]))
            case "quota":
                return self._quota(declared)
            case "secret":
                return None if self._named(declared) is None else Present({})
            case "user":
                row = self._named(declared, "user")
                if row is None or not row["registered"]:
                    return None
                return Present(cast("Json", row["bounds"]), str(row["version"]))
            case "webhook":
                row = self._named(declared)
                return None if row is None else Present(row)
            case _:
                return self._key(declared)

    def _get(self, path: str, tenant: str | None = None) -> Json | None:
        key = path, tenant
        if key not in self._read:
            try:
                self._read[key] = self._client.get(path, {"tenant": tenant} if tenant else None)
            except NotFound:
                self._read[key] = None
        return self._read[key]

    def _configured(self, kind: str, name: str) -> Present | None:
        for row in items(self._get(f"/v1/{kind}s") or {"items": []}):
            if row[kind] == name:
                return Present(cast("Json", row["settings"]), str(row["version"]))
        return None

    def _quota(self, declared: Declared) -> Present | None:
        tenant = self._get(f"/v1/tenants/{part(declared.owner)}") or {"quota": []}
        for row in cast("list[Json]", tenant["quota"]):
            if row["pool"] == declared.name:
                return Present(row, str(row["version"]))
        return None

    def _named(self, declared: Declared, field: str = "name") -> Json | None:
        """Return a secret, user or webhook; a tenant that the same file makes has none yet."""
        if self._get(f"/v1/tenants/{part(declared.owner)}") is None:
            return None
        for row in items(self._get(f"/v1/{declared.kind}s", declared.owner) or {"items": []}):
            if row[field] == declared.name:
                return row
        return None

    def _key(self, declared: Declared) -> Present | None:
        keys = self._get(f"/v1/tenants/{part(declared.owner)}/keys") or {"items": []}
        for row in items(keys):
            if row["key_id"] == declared.name:
                return Present(row)
        return None
