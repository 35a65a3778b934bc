"""The parameters of a classifier as one value, checked in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from dmin.classifier.cascade import CASCADE
from dmin.classifier.inputs import PRECOMPUTED
from dmin.classifier.refusal import Reject, check_reject
from dmin.encoder.backends import check_backend
from dmin.errors import ConfigError
from dmin.model.adaptive_head import NAME


@dataclass(frozen=True, eq=False)
class Settings:
    """The parameters of `FewShotClassifier` as they were when a state was made."""

    model: str | Path = "default"
    encoder: Callable[[Sequence[str]], Any] | str | None = None
    use_names: bool | Literal["auto"] = "auto"
    descriptions: Mapping[Any, str] | None = None
    keep_base: bool = False
    reject: Reject = None
    unknown_label: Any = None
    outside: Sequence[str] | None = None
    backend: str = "auto"
    device: str | None = None
    search: str = "exact"

    @property
    def precomputed(self) -> bool:
        """Vectors are given in place of texts."""
        return isinstance(self.encoder, str) and self.encoder == PRECOMPUTED

    @property
    def cascade(self) -> bool:
        """A static encoder answers what it is sure of, before the default one."""
        return isinstance(self.encoder, str) and self.encoder == CASCADE

    def check(self) -> None:
        """Raise a `ConfigError` that names a parameter which cannot be used."""
        check_backend(self.backend)
        if self.use_names not in (True, False, "auto"):
            raise ConfigError(f"use_names={self.use_names!r}: True, False or 'auto'")
        check_reject(self.reject)
        if self.search not in ("exact", "index"):
            raise ConfigError(f"search={self.search!r}: 'exact' or 'index'")
        if self.cascade and self.search == "index":
            raise ConfigError("search='index' is for one encoder: leave out encoder='cascade'")
        if self.cascade and str(self.model) not in ("default", NAME):
            raise ConfigError(f"encoder={CASCADE!r} is for the default model, not {str(self.model)!r}: leave out model")

    def opens_like(self, other: Settings) -> bool:
        """True where both name the same model."""
        return self._names() == other._names()

    def as_dict(self) -> dict[str, Any]:
        """Parameters by name, as the constructor takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _names(self) -> tuple[Any, ...]:
        return (str(self.model), self.encoder, self.backend, self.device, self.keep_base, self.search)
