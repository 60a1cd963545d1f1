"""Schema of a model's inputs: their names in order, and a hash of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """Names of the features; a model of another schema would take one feature for another."""

    name: str
    columns: tuple[str, ...]
    """Features per job."""
    context: tuple[str, ...]
    """Features per pool."""

    @property
    def sha256(self) -> str:
        names = json.dumps([self.name, self.columns, self.context])
        return hashlib.sha256(names.encode()).hexdigest()
