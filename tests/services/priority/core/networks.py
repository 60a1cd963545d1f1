"""Tiny networks as training would write them: a weighted sum of a job's features."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from services.priority.core.learned.features import SCHEMA
from services.priority.core.learned.model import LearnedModel, load_model
from services.priority.core.learned.schema import FeatureSchema

OPSET = 17
F, C = len(SCHEMA.columns), len(SCHEMA.context)


def weights(**given: float) -> list[float]:
    """One per feature, by name up to its scale: `ln_gpus=-1.0`."""
    values = [0.0] * F
    for name, weight in given.items():
        (place,) = [i for i, c in enumerate(SCHEMA.columns) if c.split("/")[0] == name]
        values[place] = weight
    return values


def network(
    weight: Sequence[float] = (1.0,) * F,
    *,
    context: float = 0.0,
    opset: int = OPSET,
    rows: int | str = "n",
    width: int = F,
    names: tuple[str, str, str] = ("x", "context", "scores"),
    divide_by: float = 1.0,
    double: bool = False,
) -> bytes:
    """scores = (x @ weight + context * sum(context)) / divide_by"""
    onnx = pytest.importorskip("onnx", reason="onnx makes the networks of these tests")
    h, kind = onnx.helper, onnx.TensorProto.DOUBLE if double else onnx.TensorProto.FLOAT
    x, pool, scores = names
    dtype = np.float64 if double else np.float32

    def constant(name: str, values: Any) -> Any:
        return onnx.numpy_helper.from_array(np.array(values, dtype), name)

    column = [[weight[i] if i < len(weight) else 0.0] for i in range(width)]
    nodes = [
        h.make_node("MatMul", [x, "w"], ["column"]),
        h.make_node("Squeeze", ["column", "axis"], ["own"]),
        h.make_node("ReduceSum", [pool], ["all"], keepdims=0),
        h.make_node("Mul", ["all", "c"], ["scaled"]),
        h.make_node("Add", ["own", "scaled"], ["sum"]),
        h.make_node("Div", ["sum", "d"], [scores]),
    ]
    constants = [constant("w", column), constant("c", context), constant("d", divide_by)]
    constants.append(onnx.numpy_helper.from_array(np.array([1], np.int64), "axis"))
    inputs = [h.make_tensor_value_info(x, kind, [rows, width])]
    inputs.append(h.make_tensor_value_info(pool, kind, [C]))
    outputs = [h.make_tensor_value_info(scores, kind, [rows])]
    graph = h.make_graph(nodes, "tiny", inputs, outputs, constants)
    imports = [h.make_opsetid("", opset)]
    model = h.make_model(graph, opset_imports=imports, ir_version=8)
    return bytes(model.SerializeToString())


def manifest(model: bytes, schema: FeatureSchema = SCHEMA, **more: object) -> bytes:
    fields = {
        "name": "tiny",
        "sha256": hashlib.sha256(model).hexdigest(),
        "opset": OPSET,
        "schema": {"name": schema.name, "sha256": schema.sha256},
        "trained": {"trace": "made up", "hours": 0.0},
    }
    return json.dumps({**fields, **more}).encode()


def tiny(**given: float) -> LearnedModel:
    """A checked model of these weights."""
    model = network(weights(**given))
    return load_model(manifest(model), model)
