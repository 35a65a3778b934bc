"""The classifier an application holds."""

from dmin.classifier.few_shot import Explanation, FewShotClassifier

__all__ = ["Explanation", "FewShotClassifier"]
