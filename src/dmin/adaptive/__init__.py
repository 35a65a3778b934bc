"""The adaptive head: what the default classifier answers with. It fits itself to the examples, in milliseconds.

Examples are centred on their own mean and weighted by how their spread differs from the general spread of texts of many
kinds; then a logistic regression and a query-weighted class vector decide together. Written on the array API: numpy arrays
and torch tensors work alike, and nothing here imports torch.
"""

from dmin.adaptive.fit import fit_head
from dmin.adaptive.head import Head
from dmin.adaptive.spread import Recipe, Spread, View
from dmin.adaptive.unlabelled import learn_unlabelled

__all__ = ["Head", "Recipe", "Spread", "View", "fit_head", "learn_unlabelled"]
