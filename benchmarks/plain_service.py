"""The service that one writes by hand: FastAPI, sentence-transformers, logistic regression. Kept to compare with.

`python -m benchmarks.plain_service PORT`: the same encoder's weights, the same 66 classes of 5 examples.
"""

from __future__ import annotations

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.common import load_corpus
from dmin.encoder.pretrained import embedded_folder

EXAMPLES = 5


class Question(BaseModel):
    """Texts to classify."""

    texts: list[str]


def build() -> FastAPI:
    """Load the encoder, fit, and answer one request at a time per thread, as the tutorials show it."""
    from sentence_transformers import SentenceTransformer
    from sklearn.linear_model import LogisticRegression

    encoder = SentenceTransformer(str(embedded_folder()), device="cpu")
    rows = [(text, label) for label, texts in load_corpus("starter").examples.items() for text in texts[:EXAMPLES]]
    vectors = encoder.encode([text for text, _ in rows], normalize_embeddings=True)
    classifier = LogisticRegression(C=10, max_iter=1000).fit(vectors, [label for _, label in rows])
    app = FastAPI()

    @app.post("/classify")
    def classify(question: Question) -> dict[str, Any]:
        found = classifier.predict_proba(encoder.encode(question.texts, normalize_embeddings=True))
        best = found.argmax(axis=1)
        return {
            "answers": [
                {"label": str(classifier.classes_[column]), "probability": float(row[column])}
                for row, column in zip(found, best, strict=True)
            ]
        }

    @app.get("/healthz")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    return app


if __name__ == "__main__":
    uvicorn.run(build(), host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
