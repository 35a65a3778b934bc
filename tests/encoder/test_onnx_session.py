"""The session of ONNX Runtime: the same answers on every processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dmin.encoder.onnx_session import open_session


@pytest.fixture
def products(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """A graph that multiplies 8-bit activations [n, 64] with 8-bit weights [64, 32], and its weights."""
    weights = np.random.default_rng(0).integers(-128, 128, (64, 32)).astype(np.int8)
    weights[:, 0] = 127
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "weights"], ["y"])],
        "products",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, ["n", 32])],
        [numpy_helper.from_array(weights, "weights")],
    )
    path = tmp_path / "products.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path, weights


@pytest.mark.parametrize("rows", [1, 7])
def test_sums_of_8_bit_products_are_exact(products: tuple[Path, np.ndarray], rows: int) -> None:
    """Two products of 255 and 127 need more than 16 bits: without VNNI their sum would be cut."""
    path, weights = products
    given = np.full((rows, 64), 255, dtype=np.uint8)
    (found,) = open_session(path).run(None, {"x": given})
    assert np.array_equal(found, given.astype(np.int32) @ weights.astype(np.int32))
    assert found[0, 0] == 64 * 255 * 127
