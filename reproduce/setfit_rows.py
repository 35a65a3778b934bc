"""SetFit on the leaderboard sets, same encoder weights and same texts, in an environment of its own.

    python -m venv peer && peer/bin/pip install setfit 'transformers<5'
    peer/bin/python reproduce/setfit_rows.py ENCODER_FOLDER DATA_FOLDER OUT.json [SET-SHOT ...]

ENCODER_FOLDER is `python -c "from dmin.encoder.pretrained import embedded_folder; print(embedded_folder())"`. Each result
is written as it is found; what stands in OUT.json already is not run again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

ITERATIONS = 5


def run(encoder: str, folder: Path, shot: int) -> dict[str, float]:
    """Train on SHOT examples per class (num_iterations=5, otherwise defaults of the library); measure on the test texts."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, models
    from setfit import SetFitModel, Trainer, TrainingArguments
    from sklearn.linear_model import LogisticRegression

    def read(name: str) -> list[dict[str, str]]:
        return [json.loads(line) for line in (folder / "leaderboard" / name).read_text().splitlines()]

    train, test = read(f"train_{shot}.jsonl"), read("test.jsonl")
    words = models.Transformer(encoder)
    body = SentenceTransformer(
        modules=[words, models.Pooling(words.get_word_embedding_dimension()), models.Normalize()]
    )
    model = SetFitModel(model_body=body, model_head=LogisticRegression(max_iter=1000))
    started = time.perf_counter()
    arguments = TrainingArguments(
        num_iterations=ITERATIONS, report_to="none", save_strategy="no", output_dir=tempfile.mkdtemp()
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Dataset.from_list(train))
    trainer.train()
    seconds = time.perf_counter() - started
    answers = model.predict([row["text"] for row in test], show_progress_bar=False)
    right = sum(str(answer) == row["label"] for answer, row in zip(answers, test, strict=True))
    return {"accuracy": right / len(test), "seconds_to_fit": round(seconds, 1)}


def main() -> None:
    encoder, data, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    chosen = sys.argv[4:] or [f"{name}-{shot}" for shot in (5, 10) for name in ("hwu64", "banking77", "clinc150")]
    results = json.loads(out.read_text()) if out.is_file() else {}
    for cell in chosen:
        if cell in results:
            continue
        name, shot = cell.rsplit("-", 1)
        results[cell] = run(encoder, data / name, int(shot))
        print(cell, results[cell], flush=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
