"""BERTopic on pools that `labelling.py bertopic` wrote; it runs in BERTopic's environment and knows nothing of dmin.

    python labelling_bertopic.py FOLDER SEED ...

FOLDER holds SEED.npy (vectors) and SEED.json (texts); SEED.out.json is written: the topic of each text, -1 for an outlier.
Once with the library's defaults (UMAP to 5 components, HDBSCAN with at least 10 texts in a topic), once with at least 5 and
its outliers put into the topic of the nearest vectors, as its documentation advises where every text needs a topic.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from bertopic import BERTopic
from umap import UMAP


def topics(texts: list[str], vectors: np.ndarray, seed: int) -> dict[str, list[int]]:
    """The topic of each text, by two settings; the components are the same."""
    reduced = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed).fit_transform(
        vectors
    )

    class Known:
        """UMAP's result as BERTopic's step of reduction."""

        def fit(self, *_: object, **__: object) -> Known:
            """Nothing is left to do."""
            return self

        def transform(self, _: object) -> np.ndarray:
            """The components [n, 5]."""
            return reduced

    found = {}
    plain, _ = BERTopic(umap_model=Known(), embedding_model=None).fit_transform(texts, vectors)
    found["BERTopic"] = list(map(int, plain))
    model = BERTopic(umap_model=Known(), embedding_model=None, min_topic_size=5)
    small, _ = model.fit_transform(texts, vectors)
    if -1 in small and len(set(small)) > 1:
        small = model.reduce_outliers(texts, small, strategy="embeddings", embeddings=vectors)
    found["BERTopic, 5, no outliers"] = list(map(int, small))
    return found


def main() -> None:
    """See the top of the file."""
    folder = Path(sys.argv[1])
    for seed in map(int, sys.argv[2:]):
        texts = json.loads((folder / f"{seed}.json").read_text())
        found = topics(texts, np.load(folder / f"{seed}.npy"), seed)
        (folder / f"{seed}.out.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
