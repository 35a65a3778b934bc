"""All settings of a training run: one model, from YAML and overrides; an unknown key is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from dmin.data.columns import split_names
from dmin.data.yaml_documents import parse_yaml
from dmin.errors import ConfigError, DataError, nearest_name, one_line, unknown_name
from dmin.files import short

Tune = Literal["full", "lora", "none"]
_MOST_BYTES = 1 << 20  # of a file of settings
_MOST_SEED = 2**63 - 1
NAMED_ENCODERS = ("default", "minilm", "bge-small", "static")

# Settings by name: the paper's own two, for whoever has its data and a GPU.
_PAPER: dict[str, Any] = {
    "method": "dmin",
    "encoder": "bert-base-uncased",
    "pooling": "cls",
    "tune": "full",
    "queries": 10,
    "max_length": 128,
    "stage2.episodes": 5000,
}
PRESETS: dict[str, dict[str, Any]] = {
    "paper-odic": {**_PAPER, "data": "odic", "base_classes": 100, "test_episodes": 300, "max_length": 64},
    "paper-rcv1": {
        **_PAPER,
        "data": "rcv1",
        "base_classes": 20,
        "test_episodes": 100,
        "max_length": 256,
        "split_seed": 0,
        "split_sizes": (31, 10, 14),  # of the 55 topics; the paper does not say
    },
}


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class SupervisedSettings(_Settings):
    """Stage 1: a cosine classifier over the base classes."""

    epochs: int = Field(default=10, ge=0, description="passes over the base texts, at most")
    batch: int = Field(default=32, ge=1, description="texts in an update, in each process")
    learning_rate: float = Field(default=5e-3, gt=0, description="of the class vectors and the scale")
    encoder_learning_rate: float = Field(default=2e-5, gt=0, description="of the encoder, unless tune is none")
    held_out: float = Field(default=0.1, ge=0, lt=1, description="part of each base class held out to choose the epoch")
    patience: int = Field(default=3, ge=1, description="stop after so many epochs without a better held-out accuracy")


class MetaSettings(_Settings):
    """Stage 2: meta-training on episodes."""

    episodes: int = Field(default=1000, ge=0, description="training episodes, at most")
    batch: int = Field(default=1, ge=1, description="episodes in an update, in each process")
    learning_rate: float | None = Field(
        default=None, gt=0, description="of the method's own weights; the method's default without one"
    )
    encoder_learning_rate: float = Field(default=2e-5, gt=0, description="of the encoder, unless tune is none")
    validate_every: int = Field(default=100, ge=1, description="episodes between validations")
    validation_episodes: int = Field(default=100, ge=1, description="fixed episodes of the validation classes")
    patience: int = Field(default=10, ge=1, description="stop after so many validations without a better accuracy")
    ways: tuple[int, int] | None = Field(
        default=None, description="vary the classes in a training episode between these; without, always `way`"
    )
    shots: tuple[int, ...] | None = Field(
        default=None, description="choose the support texts per class from these; without, always `shot`"
    )
    names: float = Field(
        default=0.0, ge=0, le=1, description="part of the training episodes in which classes have their name as a row"
    )
    hold_out: bool = Field(
        default=False, description="keep stage 1's held-out texts out of the episodes too, for calibrating keep_base"
    )
    scalar_learning_rate: float | None = Field(
        default=None, gt=0, description="of scales and single weights; the method's default without one"
    )


class TrainConfig(_Settings):
    """A training run.

    Example:
        >>> TrainConfig(data="starter", way=5, shot=1).tune
        'none'
    """

    data: str = Field(default="starter", description="a named set, a file, or a Hugging Face id; several by commas")
    exclude: tuple[str, ...] = Field(default=(), description="labelled files whose texts are left out of the data")
    split: str | None = Field(default=None, description="a class split of the data, by name")
    split_seed: int | None = Field(
        default=None, ge=0, le=_MOST_SEED, description="draw a class split by this seed instead"
    )
    split_sizes: tuple[int, int, int] | None = Field(
        default=None, description="train, valid and test classes of a drawn split"
    )
    all_classes: bool = Field(
        default=False, description="hold no class back: the model answers all classes of the data, without examples"
    )
    text_column: str = "text"
    label_column: str = "label"
    encoding: str = Field(default="utf-8", description="of text files")
    encoder: str = Field(default="minilm", description="a named encoder, a folder, or a Hugging Face id")
    pooling: Literal["auto", "cls", "mean", "layers"] = Field(
        default="auto", description="tokens' states to a vector; auto: what suits encoder and method"
    )
    max_length: int = Field(default=64, ge=4, description="tokens of a text, at most")
    method: str = "dmin-plus"
    options: dict[str, Any] = Field(default_factory=dict, description="the method's own options")
    way: int = Field(default=5, ge=2, description="classes in an episode")
    shot: int = Field(default=1, ge=1, description="support texts per class")
    queries: int = Field(default=10, ge=1, description="query texts per class")
    tune: Tune = Field(default="none", description="what of the encoder learns")
    base_classes: Literal["all"] | int | tuple[str, ...] = Field(
        "all", description="classes of the memory: all training classes, so many of them, or these"
    )
    episode_classes: Literal["all", "without-base"] = Field(
        default="all", description="training classes episodes are made of"
    )
    stage1: SupervisedSettings = SupervisedSettings()
    stage2: MetaSettings = MetaSettings()
    warm_up: float = Field(
        default=0.1, ge=0, le=1, description="part of the updates over which the encoder's rate rises"
    )
    clip: float = Field(default=1.0, gt=0, description="largest norm of a gradient")
    weight_decay: float = Field(default=0.01, ge=0, description="on the encoder's matrices")
    precision: Literal["auto", "float32", "bf16"] = Field(default="auto", description="of the encoder while it learns")
    test_episodes: int = Field(default=300, ge=0, description="episodes of the test classes for the closing evaluation")
    tensorboard: bool = Field(default=False, description="write TensorBoard logs (extra)")
    device: str | None = None
    seed: int = Field(default=0, ge=0, le=_MOST_SEED, description="of all random draws")

    @field_validator("encoder")
    @classmethod
    def _embedded(cls, value: str) -> str:
        """ "default" is the embedded encoder that can be tuned, as in the settings of runs of version 0.1."""
        return "minilm" if value == "default" else value

    @field_validator("base_classes", mode="before")
    @classmethod
    def _number_or_list(cls, value: Any) -> Any:
        if isinstance(value, str) and value != "all":
            return int(value) if value.isdigit() else tuple(name.strip() for name in value.split(","))
        return tuple(value) if isinstance(value, list) else value

    @field_validator("exclude", mode="before")
    @classmethod
    def _files(cls, value: Any) -> Any:
        return tuple(split_names(value)) if isinstance(value, str) else value

    @field_validator("split_sizes", mode="before")
    @classmethod
    def _sizes(cls, value: Any) -> Any:
        sizes = tuple(value.replace(",", "/").split("/")) if isinstance(value, str) else value
        if sizes is not None and len(sizes) != 3:
            raise ValueError("three numbers are needed, train/valid/test, like 40/12/14")
        return sizes

    @property
    def digest(self) -> str:
        """Identifies the settings; those at their defaults do not count, so that later versions may add some."""
        content = json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def to_yaml(self) -> str:
        """The settings as YAML text that `load_config` reads back."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def load_config(
    path: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    preset_name: str | None = None,
    *,
    searched: bool = False,
) -> TrainConfig:
    """Settings from a preset, changed by a YAML file, changed by overrides: `{"stage2.episodes": 500, "way": 10}`.

    Args:
        path: the YAML file.
        overrides: settings by dotted names.
        preset_name: the preset.
        searched: begin with what a search chose for the method (`searched_settings`), as a new training does. A file that
            has every setting, as a run stores it, is taken as it is.

    Raises:
        ConfigError: one line that names the key and what it takes.
    """
    if path is not None and path.is_file() and path.stat().st_size > _MOST_BYTES:
        raise ConfigError(f"{path} has {path.stat().st_size:,} bytes: too many for a file of settings")
    stored = _read_yaml(path) if path is not None else {}
    values: dict[str, Any] = {}
    given = {**preset(preset_name), **flatten(stored), **flatten(overrides or {})}
    searched = searched and not stored.keys() >= TrainConfig.model_fields.keys()
    for key, value in ({**searched_settings(given), **given} if searched else given).items():
        target = values
        *sections, last = key.split(".")
        for section in sections:
            target = target.setdefault(section, {})
            if not isinstance(target, dict):
                raise ConfigError(f"setting {key!r}: {section!r} has no parts")
        target[last] = value
    try:
        return TrainConfig(**values)
    except ValidationError as error:
        raise ConfigError(_explain(error, path)) from error


def searched_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a search on validation classes chose for the method of some settings, by dotted names.

    It was made with a frozen encoder and for episodes: with another `tune`, or `all_classes`, there is none.
    """
    from dmin.methods import METHODS

    given = flatten(given)
    fields = TrainConfig.model_fields
    method, tune, every = (given.get(key, fields[key].default) for key in ("method", "tune", "all_classes"))
    if not isinstance(method, str) or method not in METHODS or tune != "none" or every:
        return {}
    found = dict(METHODS[method].traits.searched)
    both = any(given.get(f"options.{name}") for name in ("capsules", "share_routing"))
    if both or given.get("encoder", fields["encoder"].default) not in NAMED_ENCODERS:
        # One number is asked for both modules; and those of the search divide the width of the package's encoders.
        found = {key: value for key, value in found.items() if not key.endswith("_capsules")}
    return found


def preset(name: str | None) -> dict[str, Any]:
    """The settings of a preset; none for None."""
    if name is None:
        return {}
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return dict(PRESETS[name])


def differences(one: TrainConfig, other: TrainConfig) -> list[str]:
    """The settings in which two configurations differ, as "key: one -> other"."""
    first, second = flatten(one.model_dump(mode="json")), flatten(other.model_dump(mode="json"))
    keys = sorted(set(first) | set(second))
    return [f"{key}: {first.get(key)} -> {second.get(key)}" for key in keys if first.get(key) != second.get(key)]


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"a": {"b": 1}}` -> `{"a.b": 1}`."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def known_keys(model: type[BaseModel] = TrainConfig, prefix: str = "") -> list[str]:
    """Every setting's dotted name."""
    keys = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            keys += known_keys(inner, f"{prefix}{name}.")
        else:
            keys.append(f"{prefix}{name}")
    return keys


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = parse_yaml(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError as error:
        raise ConfigError(f"no such configuration file: {path}") from error
    except (OSError, UnicodeDecodeError, DataError) as error:
        raise ConfigError(f"cannot read {path}: {one_line(error)}") from error
    if not isinstance(values, dict | None):
        raise ConfigError(f"{path}: settings as 'key: value' lines are needed")
    return values or {}


def _explain(error: ValidationError, path: Path | None) -> str:
    first = error.errors()[0]
    where = ".".join(str(part)[:100] for part in first["loc"])
    source = f"{path}: " if path else ""
    if first["type"] == "extra_forbidden":
        near = nearest_name(where, known_keys())
        return f"{source}unknown setting {where!r}" + (f": did you mean {near!r}?" if near else "")
    return f"{source}setting {where!r} = {short(first['input'])}: {one_line(first['msg'])}"
