"""What a model was trained on: the names of its inputs, in order, and their hash."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """A model of another schema would read one feature for another: its hash must be the same."""

    name: str
    columns: tuple[str, ...]
    """Per job."""
    context: tuple[str, ...]
    """Per pool."""

    @property
    def sha256(self) -> str:
        said = json.dumps([self.name, self.columns, self.context])
        return hashlib.sha256(said.encode()).hexdigest()
