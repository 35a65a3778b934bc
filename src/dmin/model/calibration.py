"""The calibration of a head: from scores to probabilities, the refusal threshold, a name's weight, base classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from dmin.errors import ModelError

CLASSES, EXAMPLES = 20, 5  # at which `temperature` is the scale


@dataclass(frozen=True)
class Calibration:
    """Probabilities are softmax(scale·score); texts below the cosine of all but `refused_part` are refused.

    The score is the deciding one: a cosine for most methods, logit plus weighted cosine for the adaptive head.
    """

    temperature: float  # of 20 classes with 5 examples
    temperature_per_log_class: float
    temperature_per_log_example: float
    refused_part: float  # rate of false rejections, at the best balance with unknown texts rejected
    cut: float  # the cosine of that part, in validation tasks of one example per class
    cut_per_log_example: float
    name_weight: float
    base_offset: float = (
        0.0  # added to the cosines of base classes, so that they compete fairly with novel ones of 1 example
    )
    base_offset_per_log_example: float = 0.0
    tasks: int = 0
    least_scale: float = 1.0

    def scale(self, classes: int, examples: float) -> float:
        """What a score is multiplied by before the softmax, among so many classes with so many examples each."""
        growth = self.temperature_per_log_class * math.log(max(2, classes) / CLASSES)
        growth += self.temperature_per_log_example * math.log(max(1.0, examples) / EXAMPLES)
        return max(self.least_scale, self.temperature + growth)

    def threshold(self, examples: int) -> float:
        """The cosine below which a text is refused, the nearest class having so many examples."""
        return self.cut + self.cut_per_log_example * math.log(max(1, examples))

    def offset(self, examples: float) -> float:
        """What is added to the cosines of base classes beside novel classes of so many examples."""
        return self.base_offset + self.base_offset_per_log_example * math.log(max(1.0, examples))

    def as_dict(self) -> dict[str, Any]:
        """As it stands in `head.json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Read what `as_dict` gave."""
        missing = [field.name for field in fields(cls) if field.name not in values and field.default is MISSING]
        if missing:
            raise ModelError(f"the calibration in head.json lacks {', '.join(missing)}: train the model again")
        return cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})
