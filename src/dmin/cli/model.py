"""`dmin model`: look at a trained model, take its head alone, write its card, send it to the hub."""

from __future__ import annotations

from pathlib import Path

import typer

from dmin.errors import ConfigError

model = typer.Typer(help="Look at trained models, keep a head alone, send a model to the hub.", no_args_is_help=True)
_RUN = "The folder of a run or model, a Hugging Face id, or: default."


@model.command()
def info(name: str = typer.Argument("default", help=_RUN)) -> None:
    """Show what a model is: method, data, base classes, calibration.

    \b
    dmin model info
    dmin model info runs/mine
    """
    from dmin.model import load_model

    trained = load_model(_folder(name))
    head = trained.info
    typer.echo(f"method: {head.method} {head.options or ''}")
    typer.echo(f"encoder: width {head.dim}, {head.pooling} pooling, at most {head.max_length} tokens")
    typer.echo(f"weights of the head: {sum(w.numel() for w in trained.method.parameters()):,}")
    for key, value in head.trained_on.items():
        typer.echo(f"{key}: {value}")
    typer.echo(f"base classes: {len(head.base_classes)} ({', '.join(head.base_classes[:5])} ...)")
    for key, value in (head.calibration or {}).items():
        typer.echo(f"calibration, {key.replace('_', ' ')}: {value:.4g}")


@model.command()
def head(
    run: str = typer.Argument(help="The folder of a run or model on the embedded encoder."),
    out: Path = typer.Option(..., help="Where head.json, head.safetensors and README.md go."),
    max_length: int | None = typer.Option(None, help="Tokens of a text, at most, when the head is used."),
    notes: Path | None = typer.Option(None, help="A Markdown file that ends the card: results, licences, limits."),
) -> None:
    """Keep a head without its encoder: a megabyte or two, in half precision, that belong to the embedded encoder.

    \b
    dmin model head runs/mine --out mine-head
    """
    from dataclasses import replace

    from dmin.encoder import Encoder
    from dmin.files import write_atomic
    from dmin.model import TrainedModel, load_model
    from dmin.model.card import model_card, read_cells
    from dmin.model.folder import save_head

    trained = load_model(run)
    if trained.encoder.fingerprint != Encoder("default", pooling=trained.info.pooling).fingerprint:
        raise ConfigError(f"{run}: its encoder was tuned; a head alone works with the embedded encoder only")
    kept = replace(trained.info, max_length=max_length or trained.info.max_length)
    save_head(out, TrainedModel(trained.encoder, trained.method, kept), half=True)
    write_atomic(out / "README.md", model_card(kept, read_cells(Path(run)), _notes(notes)))
    typer.echo(f"written: {out}")


@model.command()
def card(
    run: str = typer.Argument(help="The folder of a run or model."),
    notes: Path | None = typer.Option(None, help="A Markdown file that ends the card: results, licences, limits."),
) -> None:
    """Write the model's card, README.md, beside its weights."""
    from dmin.files import write_atomic
    from dmin.model import load_model
    from dmin.model.card import model_card, read_cells
    from dmin.model.folder import model_folder

    folder = model_folder(_folder(run))
    write_atomic(folder / "README.md", model_card(load_model(folder).info, read_cells(Path(run)), _notes(notes)))
    typer.echo(f"written: {folder / 'README.md'}")


@model.command()
def export(
    name: str = typer.Argument("default", help=_RUN),
    onnx: bool = typer.Option(True, "--onnx", help="Export for ONNX Runtime (the only format there is)."),
    int8: bool = typer.Option(False, "--int8", help="With 8-bit weights: about twice as fast, a little less exact."),
    out: Path | None = typer.Option(None, help="The file. Default: beside the weights, where the classifier finds it."),
) -> None:
    """Export a model's encoder for backend="onnx" or "onnx-int8", and check it against torch.

    \b
    dmin model export --onnx --int8
    dmin model export runs/mine --onnx
    dmin classify --backend onnx-int8 --examples intents.yaml "where is my parcel?"
    """
    del onnx
    from dmin.encoder.encoder import export_place
    from dmin.encoder.onnx import export_onnx
    from dmin.model import load_model

    encoder = load_model(_folder(name), device="cpu").encoder
    path = out or export_place(encoder, "onnx-int8" if int8 else "onnx")
    typer.echo("exporting, about half a minute ...", err=True)
    cosine = export_onnx(encoder.network, path, encoder.fingerprint, int8=int8)
    typer.echo(
        f"written: {path} ({path.stat().st_size / 1e6:.0f} MB), checked: cosine with torch at least {cosine:.4f}"
    )


@model.command()
def push(
    run: str = typer.Argument(help="The folder of a run or model."),
    to: str = typer.Argument(help="Where on the Hugging Face hub: owner/name."),
    private: bool = typer.Option(False, help="Make the repository private."),
) -> None:
    """Send a trained model with its card to the Hugging Face hub (log in with: hf auth login)."""
    from dmin.hub import is_hub_id, send_folder
    from dmin.model.folder import model_folder

    if not is_hub_id(to):
        raise ConfigError(f"{to!r}: owner/name is needed")
    folder = model_folder(run)
    if not (folder / "README.md").is_file():
        card(run, None)
    typer.echo(f"sent: {send_folder(folder, to, private=private)}")


def _folder(name: str) -> str | Path:
    from dmin.model import shipped_head

    return shipped_head() if name == "default" else name


def _notes(path: Path | None) -> str:
    if path is None:
        return ""
    if not path.is_file():
        raise ConfigError(f"no such file: {path}")
    return path.read_text(encoding="utf-8")
