"""`dmin model`: show a trained model, save its head alone, write its card, export it, send it to the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dmin.cli import options
from dmin.cli.common import echo, plain_warnings, warn
from dmin.errors import ConfigError, one_line, printable

SHOWN_CLASSES = 20

model = typer.Typer(help="Show, export or publish trained models.", no_args_is_help=True)


@model.command()
def info(name: options.ModelOrDefault = "default") -> None:
    """Show a model's method, data, base classes and calibration.

    Of a saved classifier it shows the classes with their examples, and what is refused, first.

    \b
    Examples:
      dmin model info
      dmin model info runs/mine
      dmin model info saved-classifier
    """
    if (Path(name) / "classifier.json").is_file():
        _show_classifier(name)
        return
    from dmin.model import load_model

    trained = load_model(_folder(name))
    head = trained.info
    echo(f"method: {head.method} {head.options or ''}")
    echo(f"encoder: width {head.dim}, {head.pooling} pooling, at most {head.max_length} tokens")
    echo(f"weights of the head: {sum(w.numel() for w in trained.method.parameters()):,}")
    for key, value in head.trained_on.items():
        echo(f"{printable(key)}: {printable(value)}")
    echo(f"base classes: {len(head.base_classes)} ({', '.join(head.base_classes[:5])} ...)")
    for key, value in (head.calibration or {}).items():
        echo(f"calibration, {key.replace('_', ' ')}: {value:.4g}")


@model.command()
def head(
    run: Annotated[str, typer.Argument(help="The folder of a run or model on the embedded encoder.")],
    out: Annotated[Path, typer.Option(help="Where head.json, head.safetensors and README.md go.")],
    max_length: Annotated[int | None, typer.Option(help="Longest text in tokens when the head is used.")] = None,
    notes: options.Notes = None,
) -> None:
    """Save a head without its encoder, in half precision.

    The head has a megabyte or two and works with the embedded encoder. Writes head.json, head.safetensors and README.md.

    \b
    Examples:
      dmin model head runs/mine --out mine-head
    """
    from dataclasses import replace

    from dmin.encoder import Encoder
    from dmin.files import check_replaceable
    from dmin.model import TrainedModel, load_model
    from dmin.model.card import model_card, read_cells
    from dmin.model.folder import save_head

    check_replaceable(out, "head.json")
    trained = load_model(run)
    if trained.encoder.fingerprint != Encoder("minilm", pooling=trained.info.pooling).fingerprint:
        raise ConfigError(f"{run}: its encoder was tuned; a head alone works with the embedded encoder only")
    kept = replace(trained.info, max_length=max_length or trained.info.max_length)
    card = model_card(kept, read_cells(Path(run)), _notes(notes))
    save_head(out, TrainedModel(trained.encoder, trained.method, kept), card)
    echo(f"written: {out}")


@model.command()
def card(run: options.Run, notes: options.Notes = None) -> None:
    """Write the model card, README.md, beside the weights.

    \b
    Examples:
      dmin model card runs/mine --notes limits.md
    """
    from dmin.files import write_atomic
    from dmin.model import load_model
    from dmin.model.card import model_card, read_cells
    from dmin.model.folder import model_folder

    folder = model_folder(_folder(run))
    write_atomic(folder / "README.md", model_card(load_model(folder).info, read_cells(Path(run)), _notes(notes)))
    echo(f"written: {folder / 'README.md'}")


@model.command()
def export(
    name: options.ModelOrDefault = "default",
    onnx: Annotated[bool, typer.Option("--onnx", hidden=True)] = False,  # accepted for one release
    int8: Annotated[bool, typer.Option("--int8", help="8-bit weights: about twice as fast, less exact.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="The file. Default: beside the weights, where the classifier finds it.")
    ] = None,
) -> None:
    """Export a model's encoder for ONNX Runtime and check it.

    The file is used by --backend onnx (with --int8: onnx-int8). Prints its size and the smallest cosine between its vectors
    and those of torch.

    \b
    Examples:
      dmin model export --int8
      dmin model export runs/mine
      dmin classify --backend onnx-int8 --examples intents.yaml "hello"
    """
    if onnx:
        warn("--onnx is not needed: ONNX is the only format; the option will be removed in a later release")
    from dmin.encoder.encoder import export_place
    from dmin.encoder.onnx import export_onnx
    from dmin.encoder.opening import tunable
    from dmin.model import load_model

    encoder = tunable(load_model(_folder(name), device="cpu").encoder)
    path = out or export_place(encoder, "onnx-int8" if int8 else "onnx")
    echo("exporting, about half a minute ...", err=True)
    cosine = export_onnx(encoder.network, path, encoder.fingerprint, int8=int8)
    echo(f"written: {path} ({path.stat().st_size / 1e6:.0f} MB), checked: cosine with torch at least {cosine:.4f}")


@model.command()
def push(
    run: options.Run,
    to: Annotated[str, typer.Argument(help="Where on the Hugging Face hub: owner/name.")],
    private: Annotated[bool, typer.Option(help="Make the repository private.")] = False,
) -> None:
    """Upload a model with its card to the Hugging Face hub.

    Log in first with: hf auth login. Prints the address of the repository.

    \b
    Examples:
      dmin model push runs/mine someone/my-intents --private
    """
    from dmin.hub import is_hub_id, send_folder
    from dmin.model.folder import model_folder

    if not is_hub_id(to):
        raise ConfigError(f"{to!r}: owner/name is needed")
    folder = model_folder(run)
    if not (folder / "README.md").is_file():
        card(run, None)
    echo(f"sent: {send_folder(folder, to, private=private)}")


def _show_classifier(name: str) -> None:
    """Print what a saved classifier knows and refuses, and which model it uses."""
    from dmin.classifier import FewShotClassifier

    with plain_warnings():
        state = FewShotClassifier.load(name).state_
    entries, settings = state.knowledge.classes, state.settings
    echo(f"saved classifier: {len(entries)} classes, {sum(len(entry.examples) for entry in entries)} examples")
    for entry in entries[:SHOWN_CLASSES]:
        echo(f"  {printable(entry.label)}: {len(entry.examples)}")
    if len(entries) > SHOWN_CLASSES:
        echo(f"  and {len(entries) - SHOWN_CLASSES} more")
    own = settings.encoder is not None
    model = settings.model if str(settings.model) in ("default", "nearest") else "its own, in the folder"
    echo(f"model: {'nearest prototypes' if own else model}, method {state.model.method.name}")
    echo(f"names of classes {'take' if state.names_on else 'do not take'} part")
    refused = (
        "nothing" if settings.reject is None else f"below {settings.reject}, as {printable(state.refused_label)!r}"
    )
    echo(f"refused: {refused}" + (f" (now below {state.threshold:.3f})" if state.threshold is not None else ""))


def _folder(name: str) -> str | Path:
    from dmin.model import shipped_head

    return shipped_head() if name == "default" else name


def _notes(path: Path | None) -> str:
    if path is None:
        return ""
    if not path.is_file():
        raise ConfigError(f"no such file: {path}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"--notes {str(path)!r}: a Markdown file in UTF-8 is needed: {one_line(error)}") from error
