"""Checks of a network: its file, its features and its scores."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from services.priority.core.learned.features import SCHEMA
from services.priority.core.learned.model import MODEL_MOST_BYTES, BadModel, BadOutput, load_model
from services.priority.core.learned.onnx_opset import opset_of
from services.priority.core.learned.schema import FeatureSchema
from tests.services.priority.core.networks import OPSET, C, F, manifest, network, tiny, weights

CONTEXT = np.zeros(C, np.float32)


def test_a_good_model_scores_each_job_by_itself() -> None:
    made = network(weights(ln_gpus=2.0))
    model = load_model(manifest(made), made)
    x = np.random.default_rng(1).random((5, F), np.float32)
    place = [c.split("/")[0] for c in SCHEMA.columns].index("ln_gpus")
    assert np.allclose(model.scores(x, CONTEXT), 2.0 * x[:, place])
    assert model.scores(x, CONTEXT).dtype == np.float32
    assert len(model.scores(x[:0], CONTEXT)) == 0


def test_the_same_jobs_have_the_same_scores_every_time() -> None:
    x = np.random.default_rng(2).random((4000, F), np.float32)
    assert np.array_equal(
        tiny(ln_gpus=1.5).scores(x, CONTEXT), tiny(ln_gpus=1.5).scores(x, CONTEXT)
    )


def test_the_opset_is_read_from_the_bytes() -> None:
    assert opset_of(network()) == OPSET
    assert opset_of(network(opset=15)) == 15
    assert opset_of(b"") is None


@pytest.mark.parametrize(
    ("model", "fields", "message"),
    [
        (network(), {"sha256": "0" * 64}, r"sha256: '0{64}', must be that of the model's bytes"),
        (network(), {"opset": 15}, r"opset: 15, must be that of the model, 17"),
        (network(opset=11), {"opset": 11}, r"opset: 11, must be from 13 to \d+"),
        (b"\xff" * 40, {}, r"opset: 17, must be that of the model, None"),
        (network()[:-40], {}, r"(model: rejected by the runtime|opset: 17)"),
        (b"\0" * (MODEL_MOST_BYTES + 1), {}, r"model: '1048577 bytes', must be at most 1048576"),
        (network(names=("jobs", "context", "scores")), {}, r"inputs: \['context', 'jobs'\], must"),
        (network(names=("x", "context", "out")), {}, r"outputs: \['out'\], must be 'scores' among"),
        (network(width=F + 1), {}, rf"x.shape: \['n', {F + 1}\], must be \['n', {F}\]"),
        (network(rows=4), {}, rf"x.shape: \[4, {F}\], must be \['n', {F}\]"),
        (network(double=True), {}, r"x.type: 'tensor\(double\)', must be tensor\(float\)"),
        (network(divide_by=0.0), {}, r"probe: scores\[\d\]: (inf|nan), must be finite"),
        (network(), {"opset": "new"}, r"opset: Input should be a valid integer"),
    ],
)
def test_a_bad_model_is_refused_by_field_value_and_rule(
    model: bytes, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadModel, match="^" + message):
        load_model(manifest(model, **fields), model)


def test_a_model_of_other_features_is_refused() -> None:
    made = network()
    other = FeatureSchema("other", SCHEMA.columns, SCHEMA.context)
    swapped = FeatureSchema(SCHEMA.name, SCHEMA.columns[::-1], SCHEMA.context)
    with pytest.raises(BadModel, match=f"^schema.name: 'other', must be '{SCHEMA.name}'"):
        load_model(manifest(made, other), made)
    with pytest.raises(
        BadModel, match=f"^schema.sha256: '{swapped.sha256}', must be {SCHEMA.sha256}"
    ):
        load_model(manifest(made, swapped), made)


def test_a_malformed_manifest_is_refused() -> None:
    with pytest.raises(BadModel, match="^manifest: Invalid JSON"):
        load_model(b"{", network())
    with pytest.raises(BadModel, match="^name: Field required"):
        load_model(b"{}", network())


def test_a_score_that_is_no_number_is_reported_by_its_place() -> None:
    model = tiny(ln_gpus=1.0)
    x = np.zeros((3, F), np.float32)
    x[1] = np.nan
    with pytest.raises(BadOutput, match=re.escape("scores[1]: nan, must be finite")):
        model.scores(x, CONTEXT)


def test_features_of_another_shape_are_rejected_by_the_runtime() -> None:
    with pytest.raises(BadOutput, match="^scores: rejected by the runtime"):
        tiny(ln_gpus=1.0).scores(np.zeros((3, F + 1), np.float32), CONTEXT)
