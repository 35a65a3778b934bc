"""The columns that answers add to a file of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dmin.classifier.explanation import answer_texts, explain_text
from dmin.classifier.few_shot import FewShotClassifier


def field_names(top_k: int, explain: bool = False, keep: bool = False) -> tuple[str, ...]:
    """The names of the columns that answers add; `keep` adds the reason of rows that could not be used."""
    more = {"top_k": top_k > 1, "because": explain, "error": keep}
    return ("label", "score", "probability", *(name for name, wanted in more.items() if wanted))


def answer_fields(
    classifier: FewShotClassifier, texts: Sequence[str], top_k: int, explain: bool = False
) -> list[dict[str, Any]]:
    """The fields that go beside each text: label, score, probability, and what else was asked for, from one state."""
    state = classifier.state_.check_ready()
    fields = []
    for text, found in zip(texts, answer_texts(state, texts, max(1, top_k)), strict=True):
        line: dict[str, Any] = {
            "label": found.label,
            "score": round(found.score, 4),
            "probability": round(found.probability, 4),
        }
        if top_k > 1:
            line["top_k"] = [
                {"label": str(one.label), "score": round(one.cosine, 4), "probability": round(one.probability, 4)}
                for one in found.likely
            ]
        if explain:
            shares = explain_text(state, text).examples[:3]
            line["because"] = [{"share": _rounded(share.share), "text": share.text} for share in shares]
        fields.append(line)
    return fields


def _rounded(share: float) -> float | None:
    return None if share != share else round(share, 4)
