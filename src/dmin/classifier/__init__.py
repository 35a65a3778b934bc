"""The classifier an application holds."""

from dmin.classifier.explanation import Answer, Explanation, Share
from dmin.classifier.few_shot import FewShotClassifier

__all__ = ["Answer", "Explanation", "FewShotClassifier", "Share"]
