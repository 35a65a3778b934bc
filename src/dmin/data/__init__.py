"""Labelled texts, class splits and episodes."""

from dmin.data.catalog import CATALOG, choose_split, load_corpus
from dmin.data.corpus import Corpus
from dmin.data.episodes import Episode, EpisodeList, EpisodeSampler
from dmin.data.splits import ClassSplit, seeded_split

__all__ = [
    "CATALOG",
    "ClassSplit",
    "Corpus",
    "Episode",
    "EpisodeList",
    "EpisodeSampler",
    "choose_split",
    "load_corpus",
    "seeded_split",
]
