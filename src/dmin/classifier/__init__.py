"""`FewShotClassifier` and what it is made of."""

from dmin.classifier.explanation import Answer, Explanation, Share
from dmin.classifier.few_shot import FewShotClassifier

__all__ = ["Answer", "Explanation", "FewShotClassifier", "Share"]
