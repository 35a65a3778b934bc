"""Trained models in a classifier: the only part of it that needs torch, imported when such a model is opened."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dmin.classifier.scorers import Scorer
from dmin.errors import ConfigError, ModelError, StorageError
from dmin.files import read_tensors
from dmin.methods import (
    FewShotMethod,
    KeepsBaseClasses,
    LimitsSupport,
    ReadsMemory,
    exact_shares,
    prepared_scoring,
)
from dmin.model.folder import TrainedModel, copy_model, load_model, model_folder
from dmin.model.head_file import HEAD, WEIGHTS, read_head


class TrainedScorer(Scorer):
    """A method of the registry, on tensors of torch."""

    def __init__(self, method: FewShotMethod) -> None:
        self.method, self.name, self.title = method, method.name, method.title
        self.joint = method.traits.joint
        self.keeps_base = isinstance(method, KeepsBaseClasses) and method.traits.gives_cosines
        self._scoring = prepared_scoring(method)

    @property
    def temperature(self) -> float:  # type: ignore[override]
        """The factor in the scores."""
        return self.method.temperature

    @torch.no_grad()
    def prepare(self, vectors: Tensor) -> Tensor:
        """The work that each row allows on its own."""
        return self._scoring.prepare(vectors)

    def support_side(self, prepared: Tensor, mask: Tensor | None = None, row_weights: Tensor | None = None) -> Any:
        """All that scoring needs of rows [C, K, d]."""
        return self._scoring.support_side(prepared, mask, row_weights)

    def query_side(self, query: Tensor) -> Any:
        """All that scoring needs of queries [L, d]."""
        return self._scoring.query_side(query)

    def score_sides(self, support: Any, queries: Any) -> Tensor:
        """Scores [L, C]."""
        return self._scoring.score_sides(support, queries)

    @torch.no_grad()
    def shares(self, prepared: Tensor, query: Tensor, row_weights: Tensor) -> Tensor | None:
        """Each row's exact part of each score, [L, C, K]; None where scores do not divide."""
        method = exact_shares(self.method)
        return None if method is None else method.contributions(prepared, query, None, row_weights)

    @torch.no_grad()
    def base_scores(self, query: Tensor) -> Tensor:
        """Scores of the base classes, [L, N]."""
        if not isinstance(self.method, KeepsBaseClasses):
            raise TypeError(f"a {self.name} model keeps no base classes")
        return self.method.base_scores(query)

    @torch.no_grad()
    def memory_weights(self, vectors: Tensor) -> Tensor | None:
        """The weight of each base class for each row [K, N]."""
        return self.method.memory_weights(vectors) if isinstance(self.method, ReadsMemory) else None

    def weights(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Its learned weights."""
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.method.state_dict().items()}


def open_trained(model: str | Path, device: str | None, backend: str) -> TrainedModel:
    """A trained model that can classify texts by itself."""
    trained = load_model(model, device=device, backend=backend)
    if trained.method.inputs != "vectors":
        raise ConfigError(f"a {trained.info.method} model cannot classify by itself: use dmin evaluate")
    if isinstance(trained.method, LimitsSupport):
        trained.method.limit_support(trained.info.shot)
    return trained


def copy_trained(model: str | Path, scorer: Scorer, fingerprint: str | None, target: Path) -> None:
    """Copy the trained model; one that was trained anew meanwhile is not the one that made the vectors.

    No lock is taken on it: it may lie beside the folder that is being written, whose lock this process holds already.
    """
    source = model_folder(model)
    copy_model(source, target)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # (of version 0.1: said when it was loaded)
            stored = read_head(target)
        tensors, _ = read_tensors(target / WEIGHTS)
    except ModelError as error:
        raise StorageError(f"cannot save the model {source}: {error}") from error
    own = {name: torch.from_numpy(np.array(array)) for name, array in scorer.weights().items()}
    same = fingerprint is not None and stored.encoder_fingerprint == fingerprint and set(own) == set(tensors)
    if not same or any(not torch.equal(own[name], tensors[name].to(own[name].dtype)) for name in own):
        raise StorageError(f"{source / HEAD} was replaced since this classifier was fitted: fit it again, then save it")
