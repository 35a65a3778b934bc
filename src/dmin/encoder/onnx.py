"""The encoder on ONNX Runtime: exported once, checked against torch, optionally with 8-bit weights.

The graph includes pooling: ids and mask go in, vectors come out. With 8-bit weights the activations are quantised
dynamically, with one scale per batch: a text's vector then depends a little on the other texts of its batch.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmin.encoder.backends import DIGEST, need
from dmin.encoder.network import EncoderNetwork
from dmin.encoder.onnx_session import open_session
from dmin.errors import ModelError, StorageError, one_line
from dmin.files import file_digest, write_atomic

_FINGERPRINT = "dmin.encoder"
# Largest accepted difference between an export and torch: rounding for float32, a mean cosine for 8-bit weights.
LARGEST_DIFFERENCE = 1e-3
EXACT_LAYERS = 2
SMALLEST_COSINE = 0.97


class OnnxNetwork:
    """Token ids to vectors on ONNX Runtime.

    Args:
        path: a file that `export_onnx` wrote.
        pad: the padding id.
        fingerprint: of the encoder that the file must belong to.

    One thread computes a batch; several threads may call it at the same time.
    """

    def __init__(self, path: Path, pad: int, fingerprint: str) -> None:
        need("onnxruntime")
        check_export(path)
        try:
            self._session = open_session(path)
        except Exception as error:  # (ONNX Runtime raises many kinds and has no base class)
            raise ModelError(
                f"{path} cannot be read, export it again (dmin model export): {one_line(error, 200)}"
            ) from error
        if self._session.get_modelmeta().custom_metadata_map.get(_FINGERPRINT) != fingerprint:
            raise ModelError(f"{path} was exported from another encoder than the one beside it: dmin model export")
        self._pad = pad

    def __call__(self, rows: Sequence[Sequence[int]]) -> Any:
        """Vectors [n, d] of n texts."""
        ids = np.full((len(rows), max(map(len, rows))), self._pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = row
            mask[index, : len(row)] = 1
        return self._session.run(None, {"ids": ids, "mask": mask})[0]


def export_onnx(network: EncoderNetwork, path: Path, fingerprint: str, *, int8: bool = False) -> float:
    """Write the encoder as one ONNX file and compare it with torch; return the smallest cosine between their vectors.

    The file appears whole and checked, or not at all.
    """
    for package in ("onnx", "onnxruntime", *(() if int8 else ("onnxscript",))):
        need(package)
    part = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if int8:
            whole = path.with_name(f".{os.getpid()}-whole.onnx")
            try:
                _trace(network, whole, fingerprint)
                shape = network.backbone.config
                _quantise(whole, part, getattr(shape, "intermediate_size", 0), network.state_width)
            finally:
                whole.unlink(missing_ok=True)
        else:
            _trace(network, part, fingerprint)
        cosine = _compare(network, OnnxNetwork(part, network.pad, fingerprint), int8)
        # Without its old digest first: killed in between, the export is there without one, never with a wrong one.
        _digest_file(path).unlink(missing_ok=True)
        part.replace(path)
        write_atomic(_digest_file(path), file_digest(path) + "\n")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {one_line(error)}") from error
    finally:
        part.unlink(missing_ok=True)
    return cosine


def check_export(path: Path) -> None:
    """Raise a `ModelError` if an export is not the one that its digest was written for; version 0.1 wrote none."""
    digest = _digest_file(path)
    try:
        if digest.is_file() and digest.read_text(encoding="utf-8").strip() != file_digest(path):
            raise ModelError(f"{path} is damaged: it does not match {digest.name}; export it again (dmin model export)")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot read {path}: {one_line(error)}") from error


def _digest_file(path: Path) -> Path:
    return path.with_name(path.name + DIGEST)


class _Graph(nn.Module):
    """The module that is exported: backbone and pooling, from plain tensors to vectors."""

    def __init__(self, network: EncoderNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.network.vectors(ids, mask)


def _trace(network: EncoderNetwork, path: Path, fingerprint: str) -> None:
    """Float32 graph for any number of texts of any length, with the encoder's fingerprint in it."""
    import onnx

    ids = torch.ones((3, 7), dtype=torch.long, device=network.device)
    texts, tokens = torch.export.Dim("texts", min=1), torch.export.Dim("tokens", min=2)
    shapes = {"ids": {0: texts, 1: tokens}, "mask": {0: texts, 1: tokens}}
    was_training = network.training
    try:
        with _quiet(), torch.no_grad():
            torch.onnx.export(
                _Graph(network).eval(), (ids, torch.ones_like(ids)), str(path), dynamo=True, dynamic_shapes=shapes,
                input_names=["ids", "mask"], output_names=["vectors"], external_data=False, verbose=False,
            )  # fmt: skip
            model = onnx.load(str(path))
    except OSError:
        raise
    except Exception as error:  # (the exporter raises many kinds for a network that it does not support)
        raise ModelError(
            f"this encoder cannot be exported to ONNX: {type(error).__name__}: {one_line(error)}"
        ) from error
    finally:
        network.train(was_training)
    onnx.helper.set_model_props(model, {_FINGERPRINT: fingerprint})
    onnx.save(model, str(path))


def _quantise(whole: Path, path: Path, wide: int, narrow: int) -> None:
    """Quantise the products with weights to 8 bits, one scale per column; softmax and norms stay in float32.

    So do the products that bring the first two layers' wide activations [wide] back to [narrow]: their inputs spread
    most, and one scale for all of them cost up to half a point of accuracy.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(str(whole)).graph
    weights = {tensor.name for tensor in graph.initializer if list(tensor.dims) == [wide, narrow] and wide != narrow}
    exact = [node.name for node in graph.node if node.op_type == "MatMul" and weights & set(node.input)][:EXACT_LAYERS]
    with _quiet():
        quantize_dynamic(
            str(whole), str(path), per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"],
            nodes_to_exclude=exact, extra_options={"MatMulConstBOnly": True},
        )  # fmt: skip


def _compare(network: EncoderNetwork, exported: OnnxNetwork, int8: bool) -> float:
    """Smallest cosine on texts of many lengths; a `ModelError` where the export differs too much from torch."""
    draw = np.random.default_rng(0)
    vocabulary = int(getattr(network.backbone.config, "vocab_size", 1000))
    longest = int(getattr(network.backbone.config, "max_position_embeddings", 512)) - 2
    lengths = [2, 3, 5, 8, 13, 21, min(34, longest), min(120, longest)]
    rows = [draw.integers(0, vocabulary, size=length).tolist() for length in lengths]
    was_training = network.training
    with torch.no_grad():
        expected = network.eval()(rows).float().cpu().numpy()
    network.train(was_training)
    found = exported(rows)
    sizes = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    cosines = (found * expected).sum(axis=1) / np.maximum(sizes, 1e-12)
    if int8:
        if not cosines.mean() >= SMALLEST_COSINE:
            raise ModelError(
                f"with 8-bit weights the vectors differ too much from torch's (mean cosine {cosines.mean():.3f})"
            )
    elif not np.abs(found - expected).max() <= LARGEST_DIFFERENCE * np.abs(expected).max():
        raise ModelError(f"the exported encoder differs from torch by {np.abs(found - expected).max():.2g}")
    return float(cosines.min())


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's reports."""
    import logging

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
