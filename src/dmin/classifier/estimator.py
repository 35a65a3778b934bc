"""The contract of a scikit-learn estimator by methods of our own: importing scikit-learn would bring scipy.

Where the application has imported scikit-learn, errors and warnings are those of scikit-learn too.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, Self

from dmin.errors import ConfigError, nearest_name


class UnfittedError(ValueError, AttributeError):
    """The classifier knows no class yet; where scikit-learn is imported, also its `NotFittedError`."""


def not_fitted(message: str) -> Exception:
    """The error of an estimator that was not fitted."""
    foreign = _of_sklearn("NotFittedError")
    if foreign is None:
        return UnfittedError(message)
    found: Exception = type("NotFittedError", (UnfittedError, foreign), {"__module__": __name__})(message)
    return found


def conversion_warning() -> type[Warning]:
    """The kind of warning for labels in another shape than expected."""
    return _of_sklearn("DataConversionWarning") or UserWarning


def _of_sklearn(name: str) -> Any:
    """A class of scikit-learn's exceptions, if the application has imported them."""
    return getattr(sys.modules.get("sklearn.exceptions"), name, None)


class Estimator:
    """Parameters by name, a short `repr`, and the tags of a classifier."""

    _estimator_type = "classifier"

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. `deep` is scikit-learn's: none of them is an estimator."""
        del deep
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        known = self._parameter_names()
        for name in params:
            if name not in known:
                near = nearest_name(name, known)
                hint = f"did you mean {near!r}? " if near else ""
                raise ConfigError(
                    f"Invalid parameter {name!r} for {type(self).__name__}: {hint}there are {', '.join(known)}"
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """The tags of a classifier that needs labels; only scikit-learn calls this, so it is imported already."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier", target_tags=TargetTags(required=True), classifier_tags=ClassifierTags()
        )

    def __repr__(self) -> str:
        """The parameters that differ from their defaults."""
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name].default and repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"
