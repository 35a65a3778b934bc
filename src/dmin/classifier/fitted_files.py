"""What a saved classifier holds about its head: names that stay, and the fitted adaptive head as arrays and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmin.classifier.cascade import CASCADE
from dmin.classifier.fitting import pack, packed_model
from dmin.classifier.scoring import SHIPPED
from dmin.classifier.state import State
from dmin.errors import ModelError
from dmin.model.adaptive_head import NAME

PREFIX = "head."
FIRST = "first."  # of the first stage of a cascade
AnyArray = np.ndarray[Any, np.dtype[Any]]
OLD_ENCODER = "minilm"  # of classifiers that recorded none, or "default"


def saved_name(state: State) -> str:
    """The name of a model that comes with the package, never "default": what that is may change with the version."""
    name = str(state.settings.model)
    if state.model.setup is not None:
        return NAME
    return "nearest" if name == "default" else name  # an encoder of the user's own


def saved_encoder(state: State) -> str | None:
    """The name of the encoder, where it was chosen by name or by default; None where the model brings its own."""
    given, model = state.settings.encoder, state.model
    if state.settings.cascade:
        return CASCADE
    if isinstance(given, str):
        return model.encoder.name if model.encoder is not None else given
    by_default = given is None and model.encoder is not None and saved_name(state) in (NAME, "nearest")
    return model.encoder.name if by_default and model.encoder is not None else None


def opened_as(model: str | None, encoder_name: str | None, own_encoder: bool) -> tuple[str | None, str | None]:
    """(model, encoder) to open for the names in a file; those of version 0.1 mean what they meant then."""
    if encoder_name == "default":
        encoder_name = OLD_ENCODER  # what it was then
    with_encoder = own_encoder or encoder_name is not None
    if model == "default":
        return ("nearest", encoder_name) if with_encoder else (SHIPPED, None)
    if model == "nearest" and not with_encoder:
        return model, OLD_ENCODER
    return model, encoder_name


def fitted_arrays(state: State) -> dict[str, AnyArray]:
    """The arrays of a fitted adaptive head."""
    if state.model.head is None:
        return {}
    arrays, _ = packed_model(state.model)
    return {PREFIX + name: array for name, array in arrays.items()}


def fitted_values(state: State) -> dict[str, Any] | None:
    """The plain values of a fitted adaptive head."""
    return None if state.model.head is None else pack(state.model.head)[1] | {"settled": state.settled}


def read_fitted(
    tensors: Mapping[str, AnyArray], values: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Mapping[str, Any], bool] | None:
    """What `fitted_arrays` and `fitted_values` gave, for `dmin.classifier.state.restore`."""
    if values is None:
        return None
    arrays = {name.removeprefix(PREFIX): found for name, found in tensors.items() if name.startswith(PREFIX)}
    return arrays, values, bool(values["settled"])


def first_arrays(state: State) -> dict[str, AnyArray]:
    """The arrays of the first stage of a cascade."""
    packed = state.first.packed() if state.first is not None else None
    return {} if packed is None else {FIRST + name: array for name, array in packed[0].items()}


def first_values(state: State) -> dict[str, Any] | None:
    """The plain values of the first stage of a cascade."""
    packed = state.first.packed() if state.first is not None else None
    return None if packed is None else packed[1]


def read_first(
    tensors: Mapping[str, AnyArray], values: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """What `first_arrays` and `first_values` gave."""
    if values is None:
        return None
    return {name.removeprefix(FIRST): found for name, found in tensors.items() if name.startswith(FIRST)}, values


def read_rows(tensors: Mapping[str, AnyArray], number: int) -> tuple[AnyArray, AnyArray]:
    """(vectors, prepared) of a class; the adaptive head keeps its rows itself."""
    vectors = tensors.get(f"vectors.{number}")
    if vectors is None:
        raise ModelError(f"support.safetensors lacks the vectors of class {number}")
    return vectors, tensors.get(f"prepared.{number}", vectors)
