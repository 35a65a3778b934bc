"""Labelled texts, class splits and episodes."""

from dmin.data.catalog import CATALOG, choose_split, load_corpus
from dmin.data.corpus import Corpus
from dmin.data.episodes import Episode, EpisodeList, EpisodeSampler
from dmin.data.join import join_corpora, leave_out
from dmin.data.splits import ClassSplit, seeded_split
from dmin.data.varied import VariedSampler

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
    "seeded_split",
]
