"""dmin: few-shot text classification with Dynamic Memory Induction Networks (Geng et al., ACL 2020).

>>> from dmin import FewShotClassifier
>>> classifier = FewShotClassifier().fit({"refund": ["I want my money back"], "parcel": ["where is my order"]})
>>> classifier.predict(["please return what I paid"]).tolist()
['refund']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dmin.version import __version__

if TYPE_CHECKING:
    from dmin.classifier import FewShotClassifier
    from dmin.data import load_examples
    from dmin.labelling import suggest

__all__ = ["FewShotClassifier", "__version__", "load_examples", "suggest"]


def __getattr__(name: str) -> Any:
    """Import torch and its kin only when they are asked for: `dmin --help` must not wait for them."""
    if name == "FewShotClassifier":
        from dmin.classifier import FewShotClassifier

        return FewShotClassifier
    if name == "load_examples":
        from dmin.data import load_examples

        return load_examples
    if name == "suggest":
        from dmin.labelling import suggest

        return suggest
    raise AttributeError(f"module 'dmin' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public API, which is imported only when it is asked for."""
    return sorted(__all__)
