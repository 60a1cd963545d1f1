"""A learned policy: an ONNX network and its manifest, used only after it was checked.

A loaded model is a pure function: the same arrays give the same scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.priority.core.history.distributions import Floats
from services.priority.core.learned.features import SCHEMA
from services.priority.core.learned.onnx_opset import opset_of
from services.priority.core.learned.schema import FeatureSchema
from services.priority.core.policies.keys import TILT
from shared.contracts.pools import PoolConfigured

Float32s: TypeAlias = NDArray[np.float32]

MODEL_MOST_BYTES = 1 << 20
OPSETS = range(13, 26)
"""Versions of ONNX's operators that the runtime supports."""
JOBS, CONTEXT, SCORES = "x", "context", "scores"
PROBE_JOBS = 3
ORT_ERRORS = tuple(
    error
    for error in vars(onnxruntime_pybind11_state).values()
    if isinstance(error, type) and issubclass(error, Exception)
)
"""Errors of the runtime: they have no class in common."""


class BadModel(Exception):
    """The files are no model for this installation; the text has field, value and rule."""


class BadOutput(Exception):
    """The model's output is no score; the text has the place and the value."""


class ManifestSchema(BaseModel):
    """Schema of the features that a network was trained on."""

    model_config = ConfigDict(frozen=True)
    name: str = Field(description="name of the schema")
    sha256: str = Field(description="hash of the names in order, see `FeatureSchema.sha256`")


class ModelManifest(BaseModel):
    """The file beside the network; fields that are not listed are for people."""

    model_config = ConfigDict(frozen=True, extra="allow")
    name: str = Field(description="name of the policy")
    sha256: str = Field(description="hash of the network's bytes")
    opset: int = Field(description="version of ONNX's operators")
    schema_: ManifestSchema = Field(alias="schema", description="schema of its features")
    band: float = Field(
        0.0, ge=0, description="score within which the base policy decides; 0: nowhere"
    )


class LearnedModel:
    """A checked network, made by `load_model`."""

    def __init__(self, manifest: ModelManifest, session: Any) -> None:
        self.manifest = manifest
        self._session = session

    @property
    def sha256(self) -> str:
        return self.manifest.sha256

    def scores(self, x: Float32s, context: Float32s) -> Float32s:
        """Return scores [n] of features [n, F] and [C]; higher goes first. Raises `BadOutput`."""
        try:
            (scores,) = self._session.run([SCORES], {JOBS: x, CONTEXT: context})
        except ORT_ERRORS as error:
            raise BadOutput(f"{SCORES}: rejected by the runtime: {str(error)[:300]!r}") from None
        if scores.shape != (len(x),):
            raise BadOutput(f"{SCORES}: shape {scores.shape}, must be ({len(x)},)")
        if not np.isfinite(scores).all():
            bad = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise BadOutput(f"{SCORES}[{bad}]: {scores[bad]}, must be finite")
        result: Float32s = scores
        return result

    def rerank(self, scores: Floats, base_scores: Floats) -> Floats:
        """Return its scores in steps of its band; within a step the base's order: `keys.banded`."""
        band = self.manifest.band
        if band <= 0.0:
            return scores
        inside = TILT * (0.5 + np.arcsinh(base_scores) / 64.0)
        banded: Floats = (np.floor(scores / band) + inside) * band
        return banded


LearnedModels: TypeAlias = Mapping[str, LearnedModel | BadModel]
"""Models by name; a `BadModel` in place of one that could not be loaded."""


def model_name(family: str, pool: PoolConfigured) -> str:
    """Return the model of a family for a pool: by its preemption and its use of history."""
    kind = "preempt" if pool.preemption == "ranked" else "queue"
    return f"{family}-{kind}" + ("" if uses_history(pool) else "-blind")


def uses_history(pool: PoolConfigured) -> bool:
    """Return whether networks may use history: not in a pool that uses its users' limits alone."""
    return pool.runtime != "user"


def load_model(
    manifest_bytes: bytes, model_bytes: bytes, schema: FeatureSchema = SCHEMA
) -> LearnedModel:
    """Return the checked model. Raises `BadModel`."""
    try:
        manifest = ModelManifest.model_validate_json(manifest_bytes)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "manifest"
        raise BadModel(f"{where}: {first['msg']}") from None
    check_bytes(manifest, model_bytes)
    check_schema(manifest, schema)
    model = LearnedModel(manifest, session_of(model_bytes))
    check_shapes(model, schema)
    check_probe(model, schema)
    return model


def check_bytes(manifest: ModelManifest, model_bytes: bytes) -> None:
    if len(model_bytes) > MODEL_MOST_BYTES:
        refuse("model", f"{len(model_bytes)} bytes", f"at most {MODEL_MOST_BYTES}")
    digest = hashlib.sha256(model_bytes).hexdigest()
    if digest != manifest.sha256:
        refuse("sha256", manifest.sha256, f"that of the model's bytes, {digest}")
    try:
        opset = opset_of(model_bytes)
    except (ValueError, IndexError):
        opset = None
    if opset is None or opset != manifest.opset:
        refuse("opset", manifest.opset, f"that of the model, {opset}")
    if opset not in OPSETS:
        refuse("opset", opset, f"from {OPSETS[0]} to {OPSETS[-1]}")


def check_schema(manifest: ModelManifest, schema: FeatureSchema) -> None:
    if manifest.schema_.name != schema.name:
        refuse("schema.name", manifest.schema_.name, f"{schema.name!r}, the schema of this service")
    if manifest.schema_.sha256 != schema.sha256:
        refuse("schema.sha256", manifest.schema_.sha256, f"{schema.sha256}, of {schema.name!r}")


def session_of(model_bytes: bytes) -> Any:
    """Open the network with one thread: the same sums in the same order, beside other services."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.use_deterministic_compute = True
    try:
        return onnxruntime.InferenceSession(
            model_bytes, options, providers=["CPUExecutionProvider"]
        )
    except ORT_ERRORS as error:
        raise BadModel(f"model: rejected by the runtime: {str(error)[:300]!r}") from None


def check_shapes(model: LearnedModel, schema: FeatureSchema) -> None:
    """Check names, types and shapes; a size that is not fixed is a name, as `n`."""
    inputs = {tensor.name: tensor for tensor in model._session.get_inputs()}
    outputs = {tensor.name: tensor for tensor in model._session.get_outputs()}
    if set(inputs) != {JOBS, CONTEXT}:
        refuse("inputs", sorted(inputs), f"{JOBS!r} and {CONTEXT!r}")
    if SCORES not in outputs:
        refuse("outputs", sorted(outputs), f"{SCORES!r} among them")
    check_tensor(inputs[JOBS], [None, len(schema.columns)])
    check_tensor(inputs[CONTEXT], [len(schema.context)])
    check_tensor(outputs[SCORES], [None])


def check_tensor(tensor: Any, sizes: list[int | None]) -> None:
    """Check type and shape; the size None stands for any number of jobs and may not be fixed."""
    if tensor.type != "tensor(float)":
        refuse(f"{tensor.name}.type", tensor.type, "tensor(float), which is float32")
    shape = [size if isinstance(size, int) else None for size in tensor.shape]
    if shape != sizes:
        rule = ["n" if size is None else size for size in sizes]
        refuse(f"{tensor.name}.shape", tensor.shape, f"{rule}")


def check_probe(model: LearnedModel, schema: FeatureSchema) -> None:
    """Check that features from 0 to 1 have finite scores."""
    ramp = np.linspace(0.0, 1.0, PROBE_JOBS * len(schema.columns), dtype=np.float32)
    context = np.linspace(0.0, 1.0, len(schema.context), dtype=np.float32)
    try:
        model.scores(ramp.reshape(PROBE_JOBS, len(schema.columns)), context)
    except BadOutput as error:
        raise BadModel(f"probe: {error}") from None


def refuse(field: str, value: object, rule: str) -> NoReturn:
    raise BadModel(f"{field}: {value!r}, must be {rule}")
