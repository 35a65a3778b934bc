"""Options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES_HELP = (
    "Examples: YAML or JSON {label: [texts]}, or CSV, TSV, JSONL, Parquet with text and label. Other columns: "
    "FILE:text=COLUMN,label=COLUMN."
)
ENCODER_HELP = "minilm (default), bge-small, static, a folder, or a Hugging Face id."
RUN_HELP = "The folder of a run or model."
NOTES_HELP = "A Markdown file that ends the card: results, licences, limits."

# Files of texts
TextColumn = Annotated[str, typer.Option(help="Column of the texts. For one file: FILE:text=COLUMN,label=COLUMN.")]
LabelColumn = Annotated[str, typer.Option(help="Column of the labels.")]
Encoding = Annotated[str, typer.Option(help="Encoding of text files, like windows-1252 or utf-16.")]
Examples = Annotated[Path | None, typer.Option(help=EXAMPLES_HELP)]

# Piles of unlabelled texts
PileFile = Annotated[
    Path, typer.Option("--input", help="The pile: a CSV, TSV, JSONL, JSON, YAML, Parquet or text file.")
]
PileMost = Annotated[int, typer.Option(min=1, help="Texts that are kept of a larger pile, at random.")]
PileSeed = Annotated[int, typer.Option(min=0, help="Of samples and suggestions.")]

# The classifier
ModelName = Annotated[
    str,
    typer.Option(
        help="default, nearest, the folder of a run, a Hugging Face id, or a saved classifier (without --examples)."
    ),
]
Reject = Annotated[str | None, typer.Option(help="Refuse texts whose highest cosine is below this number, or: auto.")]
UseNames = Annotated[bool | None, typer.Option(help="Use class names as examples. Default: if labels are words.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, ... Default: a GPU if there is one.")]
ClassifierEncoder = Annotated[
    str | None,
    typer.Option(
        help="Another encoder: cascade (static where it is sure, then the default: faster), static, minilm, a folder, ..."
    ),
]
Backend = Annotated[str, typer.Option(help="What encodes: auto, torch, onnx or onnx-int8 (faster on a CPU).")]

# Data sets and episodes
Data = Annotated[str | None, typer.Option(help="Other data than the run was trained on.")]
Split = Annotated[str | None, typer.Option(help="A class split of the data, by name (see: dmin data info NAME).")]
Splits = Annotated[str | None, typer.Option(help="Class splits, separated by commas. Default: each set's own.")]
SplitSeed = Annotated[int | None, typer.Option(min=0, help="Draw a class split by this seed instead.")]
SplitSizes = Annotated[str | None, typer.Option(help="Train/valid/test classes of a drawn split, like 40/12/14.")]
Ways = Annotated[str, typer.Option(help="Numbers of classes per episode, separated by commas.")]
Shots = Annotated[str, typer.Option(help="Numbers of support texts per class, separated by commas.")]
Tune = Annotated[str | None, typer.Option(help="What of the encoder is trained: full, lora, none. Default: none.")]
Preset = Annotated[str | None, typer.Option(help="paper-odic or paper-rcv1: the settings of the paper.")]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Any setting of dmin train, like stage2.patience=5.")
]

# Models
RunFolder = Annotated[Path, typer.Argument(help="The folder of a run.")]
Run = Annotated[str, typer.Argument(help=RUN_HELP)]
ModelOrDefault = Annotated[str, typer.Argument(help="The folder of a run or model, a Hugging Face id, or: default.")]
Notes = Annotated[Path | None, typer.Option(help=NOTES_HELP)]
