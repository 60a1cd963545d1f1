"""An archive in a bucket of S3, or of a server with its API and conditional writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store as Client

from shared.bus.archive.s3_address import BadArchiveAddress, S3Address
from shared.bus.archive.store import CONTENT, MARK
from shared.bus.clock import now_ms
from shared.ledger.errors import ArchiveUnreachable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config, S3Credential

ANSWER = re.compile(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", re.DOTALL)
CONNECT_S, REQUEST_S, RETRIES_S = 5, 60, 20
RETRIES = 3
CREDENTIALS_S = 300
"""Time after which a credentials file is read again."""


class S3Store:
    """Objects made by PutObject with `If-None-Match: *`, which fails if the name exists.

    The prefix has an object `berth-archive`: without it this is another bucket or prefix, and must
    not pass as an empty archive. The right to delete objects is not needed.
    """

    def __init__(self, address: S3Address) -> None:
        """Nothing is sent yet. Raises ArchiveUnreachable for files that cannot be read."""
        self._address = address
        self._client = client_of(address)
        self._is_marked = False

    def create(self) -> None:
        """Make the prefix an archive. Raises ArchiveUnreachable if it holds anything else."""
        with self._reaching(""):
            listed = self._client.list_with_delimiter()
            if not listed["objects"] and not listed["common_prefixes"]:
                self._put(MARK, CONTENT)
        if not self._is_there():
            raise ArchiveUnreachable(f"{self._address}: not empty, and no archive of Berth")

    def check(self) -> None:
        """Raise ArchiveUnreachable if the prefix is no archive."""
        # A prefix that was an archive stays one, unlike a folder on a disk that may be unmounted.
        self._is_marked = self._is_marked or self._is_there()
        if not self._is_marked:
            raise ArchiveUnreachable(f"{self._address}: no archive: it has no object {MARK}")

    def check_writable(self) -> None:
        self.check()
        with self._reaching(MARK):
            # The name exists: the server checks the right to write, and makes nothing.
            self._put(MARK, CONTENT)

    def free_ratio(self) -> float | None:
        return None

    def put_new(self, name: str, body: bytes) -> bool:
        self.check()
        with self._reaching(name):
            return self._put(name, body)

    def get(self, name: str) -> bytes | None:
        body = self._get(name)
        if body is None:
            self.check()
        return body

    def names(self, prefix: str) -> list[str]:
        with self._reaching(prefix):
            objects = self._client.list_with_delimiter(prefix)["objects"]
        if not objects:
            self.check()
        return sorted(item["path"].rpartition("/")[2] for item in objects)

    def _is_there(self) -> bool:
        return self._get(MARK) is not None

    def _get(self, name: str) -> bytes | None:
        with self._reaching(name):
            try:
                return bytes(self._client.get(name).bytes())
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None

    def _put(self, name: str, body: bytes) -> bool:
        try:
            # An upload in parts could not be conditional.
            self._client.put(name, body, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        return True

    @contextmanager
    def _reaching(self, name: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError, BadArchiveAddress) as error:
            raise ArchiveUnreachable(f"{self._address}/{name}: {_reason(error)}") from None


class CredentialsFile:
    """Reads the file again every few minutes: keys are rotated, and session tokens expire."""

    def __init__(self, address: S3Address) -> None:
        self._address = address

    def __call__(self) -> S3Credential:
        """Read the credentials anew. Raises BadArchiveAddress."""
        read = self._address.read_credentials()
        credential: S3Credential = {
            "access_key_id": read["access_key_id"],
            "secret_access_key": read["secret_access_key"],
            "expires_at": datetime.fromtimestamp(now_ms() / 1000 + CREDENTIALS_S, UTC),
        }
        if token := read.get("session_token"):
            credential["token"] = token
        return credential


def client_of(address: S3Address) -> Client:
    """Return a client of the bucket below the prefix. Raises ArchiveUnreachable."""
    # A bucket with a retention lock refuses objects without a checksum.
    config: S3Config = {"region": address.region, "checksum_algorithm": "SHA256"}
    try:
        address.read_credentials()
        options = _options_of(address)
    except BadArchiveAddress as error:
        raise ArchiveUnreachable(f"{address}: {error}") from None
    if address.endpoint:
        config["endpoint"] = address.endpoint
    return Client(
        address.bucket,
        prefix=address.prefix or None,
        config=config,
        client_options=options,
        credential_provider=None if address.credentials is None else CredentialsFile(address),
        retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRIES_S)},
    )


def _options_of(address: S3Address) -> ClientConfig:
    options: ClientConfig = {
        "allow_http": address.allows_http,
        "connect_timeout": timedelta(seconds=CONNECT_S),
        "timeout": timedelta(seconds=REQUEST_S),
    }
    if address.ca is not None:
        try:
            options["root_certificate"] = address.ca.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise BadArchiveAddress(f"ca={address.ca}: {error}") from None
    return options


def _reason(error: Exception) -> str:
    """Return the server's own answer, or the first line of the client's text."""
    text = str(error)
    if answer := ANSWER.search(text):
        return ": ".join(answer.groups())
    return text.splitlines()[0][:500]
