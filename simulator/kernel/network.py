"""Conversion of the learned policy's network between weights and ONNX."""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from simulator.kernel.codes import CONTEXT_FEATURES, INPUTS, JOB_FEATURES
from simulator.kernel.weights import join, split

Floats = NDArray[np.float64]
OPSET = 17
IR_VERSION = 8


def network(theta: Floats) -> bytes:
    """Return ONNX of scores [n] = x A + c B + tanh(x W + c V + b) w, x [n, 8], c [4], in
    float32.
    """
    linear, inputs, biases, outputs = split(theta)
    parts = {
        "job_linear": linear[:JOB_FEATURES, None],
        "context_linear": linear[JOB_FEATURES:, None],
        "job_inputs": inputs[:JOB_FEATURES],
        "context_inputs": inputs[JOB_FEATURES:],
        "biases": biases[None, :],
        "outputs": outputs[:, None],
    }
    nodes = [
        helper.make_node("Unsqueeze", ["context", "zero"], ["c"]),
        helper.make_node("MatMul", ["x", "job_linear"], ["straight_jobs"]),
        helper.make_node("MatMul", ["c", "context_linear"], ["straight_pool"]),
        helper.make_node("MatMul", ["x", "job_inputs"], ["seen_jobs"]),
        helper.make_node("MatMul", ["c", "context_inputs"], ["seen_pool"]),
        helper.make_node("Add", ["seen_pool", "biases"], ["seen_by_all"]),
        helper.make_node("Add", ["seen_jobs", "seen_by_all"], ["seen"]),
        helper.make_node("Tanh", ["seen"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "outputs"], ["bent"]),
        helper.make_node("Add", ["straight_jobs", "straight_pool"], ["straight"]),
        helper.make_node("Add", ["straight", "bent"], ["column"]),
        helper.make_node("Squeeze", ["column", "one"], ["scores"]),
    ]
    constants = [
        numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name)
        for name, value in parts.items()
    ]
    constants += [
        numpy_helper.from_array(np.array([axis], np.int64), name)
        for name, axis in (("zero", 0), ("one", 1))
    ]
    graph = helper.make_graph(
        nodes,
        "berth_queue",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", JOB_FEATURES]),
            helper.make_tensor_value_info("context", TensorProto.FLOAT, [CONTEXT_FEATURES]),
        ],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n"])],
        constants,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, producer_name="berth", opset_imports=opsets)
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def theta_of(model: bytes) -> Floats:
    """Return the weights of a network made by `network`, rounded to float32 as it has them."""
    graph = onnx.load_from_string(model).graph
    weights = {
        constant.name: numpy_helper.to_array(constant).astype(np.float64)
        for constant in graph.initializer
    }
    linear = np.concatenate((weights["job_linear"][:, 0], weights["context_linear"][:, 0]))
    inputs = np.concatenate((weights["job_inputs"], weights["context_inputs"]))
    assert len(linear) == INPUTS
    return join(linear, inputs, weights["biases"][0], weights["outputs"][:, 0])
