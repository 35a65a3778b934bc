"""The classifier an application holds."""

from dmin.classifier.explanation import Explanation, Share
from dmin.classifier.few_shot import FewShotClassifier

__all__ = ["Explanation", "FewShotClassifier", "Share"]
