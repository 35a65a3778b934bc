"""How many directions DMM leaves: the participation ratio of vectors before and after it, by the number of capsules.

In each capsule DMM's output is a linear combination of the N transformed base rows, so at most N directions are left per
capsule. The participation ratio (sum of the eigenvalues of the covariance, squared, over the sum of their squares) says how
many directions really carry the variance. Measured on texts of validation classes, with DMM as stage 2 starts it (identity
plus noise) on the W_base of stage 1; no text of a test class is read.

    DMIN_DATA=... python -m reproduce.capsule_width > reproduce/capsule-width.md
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from dmin.methods import DMIN
from dmin.training import load_config, open_encoder, prepare_task
from dmin.training.loop import Loop
from dmin.training.metrics import MetricLog
from dmin.training.train import TRAINING_PARTS, HeadTrainer, build_head, make_accelerator

SETS = (("banking77", "protaugment-01"), ("banking77", "fair-01"), ("hwu64", "protaugment-01"), ("hwu64", "fair-01"))
CAPSULES = (1, 2, 4, 8, 16, 32, 64)


def participation_ratio(vectors: Tensor) -> float:
    """(Σλ)² / Σλ² over the eigenvalues λ of the covariance of vectors [n, d]."""
    centred = (vectors - vectors.mean(dim=0)).double()
    eigenvalues = torch.linalg.svdvals(centred) ** 2
    return float(eigenvalues.sum() ** 2 / (eigenvalues**2).sum())


def measure(data: str, split: str) -> tuple[int, float, list[float]]:
    """Number of base rows, ratio before DMM, ratio after it for each number of capsules."""
    config = load_config(overrides={"data": data, "split": split, "method": "dmin", "device": "cpu"})
    task = prepare_task(config, warnings.warn)
    accelerator = make_accelerator(config)
    loop = Loop(accelerator, None, MetricLog(None, accelerator), show=False, resume_hint="the same command")
    trainer = HeadTrainer(open_encoder(config), loop, config)
    knowledge = trainer.learn_base(config, task)
    source = trainer.source(config, task, "vectors", TRAINING_PARTS)
    vectors = source.vectors(torch.tensor(task.text_indices("valid")))  # [n, d]
    after = []
    for count in CAPSULES:
        some = config.model_copy(update={"options": {"memory_capsules": count}})
        method = build_head(some, task, vectors.shape[-1], knowledge).eval()
        assert isinstance(method, DMIN)
        with torch.no_grad():
            after.append(participation_ratio(torch.cat([method.adapt(part) for part in vectors.split(500)])))
    return len(task.base_classes), participation_ratio(vectors), after


def main() -> None:
    """Print the table."""
    print("# Directions that DMM leaves\n")
    print("Participation ratio of the vectors of validation texts before DMM, and after it with so many capsules")
    print("(`minilm`, frozen, 384 numbers; DMM at its start, on the W_base of stage 1).")
    print("Made by `python -m reproduce.capsule_width`.\n")
    print("| data, split | base rows N | before | " + " | ".join(map(str, CAPSULES)) + " |")
    print("|---|---|---|" + "---|" * len(CAPSULES))
    for data, split in SETS:
        rows, before, after = measure(data, split)
        figures = [f"{data}, {split}", str(rows), *(f"{value:.1f}" for value in (before, *after))]
        print(f"| {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
