"""What can compute an encoder of torch, and the names of exported files. No torch here."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal, get_args

from dmin.errors import ConfigError, unknown_name

Backend = Literal["torch", "onnx", "onnx-int8"]
FILES: dict[str, str] = {"onnx": "encoder.onnx", "onnx-int8": "encoder-int8.onnx"}
DIGEST = ".sha256"  # added to the name of an export: the file that holds its digest
EXPORTS = tuple(name + end for name in FILES.values() for end in ("", DIGEST))


def check_backend(backend: str) -> None:
    """Raise a `ConfigError` for a backend that is not known, or whose packages are not installed."""
    if backend not in ("auto", *get_args(Backend)):
        raise ConfigError(str(unknown_name("backend", backend, ("auto", *get_args(Backend))).args[0]))
    if backend not in ("auto", "torch"):
        need("onnxruntime")


def need(package: str) -> None:
    """Raise a `ConfigError` that names the extra, where a package of the ONNX backends is not installed."""
    if find_spec(package) is None:
        raise ConfigError(f"the ONNX backends need {package}: pip install 'dmin[onnx]'")
