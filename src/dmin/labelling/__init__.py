"""From a pile of texts to a classifier: which texts to label, which classes there are, and the labelling loop."""

from dmin.labelling.discovery import Discovery, Theme, discover
from dmin.labelling.forecast import Estimate, Forecast, Signals, estimate
from dmin.labelling.pile import Pile, pile_of, read_pile
from dmin.labelling.session import Question, Session
from dmin.labelling.suggestions import Suggestion, suggest

__all__ = [
    "Discovery",
    "Estimate",
    "Forecast",
    "Pile",
    "Question",
    "Session",
    "Signals",
    "Suggestion",
    "Theme",
    "discover",
    "estimate",
    "pile_of",
    "read_pile",
    "suggest",
]
