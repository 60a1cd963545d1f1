"""The address of an archive in S3: `s3://BUCKET/PREFIX?region=...&endpoint=...`."""

from __future__ import annotations

import configparser
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, urlsplit

SCHEME = "s3"
PREFIX = f"{SCHEME}://"
SETTINGS = ("region", "endpoint", "credentials", "profile", "ca")
KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
"""Names in a credentials file of AWS, and those of the client."""


class BadArchiveAddress(ValueError):
    """The address cannot be used; the text names the setting, its value and the rule."""


@dataclass(frozen=True, slots=True)
class S3Address:
    """A bucket, a prefix in it, and how they are reached.

    `endpoint` is empty for AWS itself. `credentials` is a file as AWS's own tools have it; without
    one the machine's role is used.
    """

    bucket: str
    prefix: str
    region: str = "us-east-1"
    endpoint: str = ""
    credentials: Path | None = None
    profile: str = "default"
    ca: Path | None = None

    def __str__(self) -> str:
        return f"{PREFIX}{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def allows_http(self) -> bool:
        return self.endpoint.startswith("http:")

    def read_credentials(self) -> dict[str, str]:
        """Return the client's settings from the file. Raises BadArchiveAddress."""
        if self.credentials is None:
            return {}
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read_string(self.credentials.read_text())
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            raise BadArchiveAddress(f"credentials={self.credentials}: {_reason(error)}") from None
        if not parser.has_section(self.profile):
            raise BadArchiveAddress(f"credentials={self.credentials}: has no [{self.profile}]")
        section = parser[self.profile]
        missing = [key for key in list(KEYS)[:2] if not section.get(key)]
        if missing:
            raise BadArchiveAddress(
                f"credentials={self.credentials}: [{self.profile}] has no {missing[0]}"
            )
        return {name: section[key] for key, name in KEYS.items() if section.get(key)}


def parse_s3(address: str) -> S3Address:
    """Parse an address. Raises BadArchiveAddress: no bucket, secrets, unknown settings."""
    try:
        parts = urlsplit(address)
        query = parse_qs(parts.query, True, strict_parsing=True) if parts.query else {}
        endpoint = _endpoint(query.get("endpoint", [""])[-1])
    except BadArchiveAddress:
        raise
    except ValueError as error:
        raise BadArchiveAddress(f"{address.partition('?')[0]}: {error}") from None
    if parts.scheme != SCHEME or not parts.hostname or parts.netloc != parts.hostname:
        raise BadArchiveAddress(
            f"{parts.scheme}://{parts.hostname or ''}: must be {PREFIX}BUCKET/PREFIX, "
            "with credentials in a file"
        )
    unknown = [name for name in query if name not in SETTINGS]
    if unknown or parts.fragment:
        raise BadArchiveAddress(f"?{(unknown or ['#'])[0]}=: must be one of {', '.join(SETTINGS)}")
    values = {name: texts[-1] for name, texts in query.items()}
    return S3Address(
        bucket=parts.hostname,
        prefix=parts.path.strip("/"),
        region=values.get("region", "us-east-1"),
        endpoint=endpoint,
        credentials=_path(values, "credentials"),
        profile=values.get("profile", "default"),
        ca=_path(values, "ca"),
    )


def same_place(a: str, b: str) -> bool:
    """Return whether two archives are one: of addresses, the bucket and prefix at one endpoint
    count.

    Raises BadArchiveAddress.
    """
    if not (a.startswith(PREFIX) and b.startswith(PREFIX)):
        return a == b
    first, second = parse_s3(a), parse_s3(b)
    return (str(first), first.endpoint) == (str(second), second.endpoint)


def _endpoint(endpoint: str) -> str:
    """Return the endpoint: over TLS, or on this machine."""
    if not endpoint:
        return ""
    parts = urlsplit(endpoint)
    if "@" in parts.netloc:
        raise BadArchiveAddress("endpoint: must have no user and no password")
    if parts.scheme == "https" and parts.hostname:
        return endpoint
    if parts.scheme == "http" and _is_loopback(parts):
        return endpoint
    raise BadArchiveAddress(f"endpoint={endpoint}: must be https://..., or http:// on loopback")


def _is_loopback(parts: SplitResult) -> bool:
    try:
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def _path(values: dict[str, str], name: str) -> Path | None:
    path = Path(values[name]) if name in values else None
    if path is not None and not path.is_absolute():
        raise BadArchiveAddress(f"{name}={path}: must be an absolute path")
    return path


def _reason(error: Exception) -> str:
    return error.strerror or "" if isinstance(error, OSError) else "not a credentials file of AWS"
