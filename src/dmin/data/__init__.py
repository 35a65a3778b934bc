"""Labelled texts, class splits and episodes."""

from dmin.data.catalog import CATALOG, choose_split, load_corpus
from dmin.data.corpus import Corpus, join_corpora, leave_out
from dmin.data.episodes import Episode, EpisodeList, EpisodeSampler, VariedSampler
from dmin.data.labelled import load_examples
from dmin.data.splits import ClassSplit, seeded_split

__all__ = [
    "CATALOG",
    "ClassSplit",
    "Corpus",
    "Episode",
    "EpisodeList",
    "EpisodeSampler",
    "VariedSampler",
    "choose_split",
    "join_corpora",
    "leave_out",
    "load_corpus",
    "load_examples",
    "seeded_split",
]
