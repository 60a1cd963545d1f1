"""The one error of the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NO_ANSWER = "no_answer"
AGAIN = frozenset({429, 502, 503, 504})


class InvalidField(NamedTuple):
    """A field that the gateway refused; `value` is None where it is private or long."""

    field: str
    value: object
    rule: str

    def __str__(self) -> str:
        value = f"{self.value!r}; " if self.value is not None else ""
        return f"{self.field or 'body'}: {value}{self.rule}"


class BerthError(Exception):
    """A request without a result.

    `status` is that of the answer, 0 without one; `reason` is a code in snake_case, and `errors`
    are the fields that were refused, of which `field`, `value` and `rule` are those of the first.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        detail: str = "",
        errors: Sequence[InvalidField] = (),
        retry_after_s: float | None = None,
    ) -> None:
        # A detail that begins with the reason says it already.
        code = "" if detail.startswith(f"{reason} ") else reason
        super().__init__(": ".join(filter(None, (code, detail, "; ".join(map(str, errors))))))
        self.status = status
        self.reason = reason
        self.detail = detail
        self.errors = tuple(errors)
        self.retry_after_s = retry_after_s

    @property
    def field(self) -> str:
        return self.errors[0].field if self.errors else ""

    @property
    def value(self) -> object:
        return self.errors[0].value if self.errors else None

    @property
    def rule(self) -> str:
        return self.errors[0].rule if self.errors else ""

    @property
    def is_temporary(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.status in AGAIN or self.reason == NO_ANSWER
