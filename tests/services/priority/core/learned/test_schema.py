"""Hash of a model's feature names."""

from __future__ import annotations

from services.priority.core.learned.features import SCHEMA
from services.priority.core.learned.schema import FeatureSchema


def test_the_hash_depends_on_names_and_their_order() -> None:
    schema = FeatureSchema("s", ("a", "b"), ("c",))
    others = (
        FeatureSchema("t", ("a", "b"), ("c",)),
        FeatureSchema("s", ("b", "a"), ("c",)),
        FeatureSchema("s", ("a",), ("b", "c")),
    )
    assert schema.sha256 == FeatureSchema("s", ("a", "b"), ("c",)).sha256
    assert schema.sha256 not in {other.sha256 for other in others}


def test_the_schema_of_the_shipped_models_is_unchanged() -> None:
    assert SCHEMA.name == "berth-queue-1"
    assert SCHEMA.sha256.startswith("16d007b7bf00a4d0")
