"""The array API of an array: of numpy as it is, of other libraries through `array_api_compat`.

numpy has the functions itself since 2.1. `array_api_compat` would copy its whole namespace, parts of it that nobody needs
too, which costs a tenth of the time to the first answer.
"""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np
from array_api_compat import device

__all__ = ["array_namespace", "device"]


def array_namespace(array: Any) -> Any:
    """The functions for an array."""
    return np if isinstance(array, np.ndarray | np.generic) else array_api_compat.array_namespace(array)
