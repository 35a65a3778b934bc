"""An interrupted file is resumed only with what it was begun with: input, classifier, options."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dmin.bulk import files as bulk
from dmin.bulk.files import classify_file
from dmin.bulk.inputs import read_texts
from dmin.errors import DataError

KINDS = [".jsonl", ".csv", ".tsv", ".parquet"]
MADE = {"classifier": "abc", "text_column": "text"}


def answer(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"label": text[-1]} for text in texts]


def write_input(path: Path, rows: int, text: str = "text") -> Path:
    path.write_text(
        "".join(json.dumps({"text": f"{text} {n}", "id": n, "more": [n, None]}) + "\n" for n in range(rows))
    )
    return path


def stopped(_: int) -> None:
    raise RuntimeError("power cut")


def run(source: Path, output: Path, **more: Any) -> int:
    return classify_file(read_texts(source), output, answer, **{"fields": ("label",), "made_with": MADE, **more})


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """An output of 30 rows whose first 10 are answered."""
    monkeypatch.setattr(bulk, "BATCH", 10)
    output = tmp_path / f"out{request.param}"
    with pytest.raises(RuntimeError):
        run(write_input(tmp_path / "in.jsonl", 30), output, after_batch=stopped)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.jsonl",
        f"{output.name}.part",
        f"{output.name}.part.json",
    ]
    return output


@pytest.mark.parametrize("begun", KINDS, indirect=True)
def test_the_same_input_continues_and_leaves_nothing_behind(begun: Path, tmp_path: Path) -> None:
    resumed: list[int] = []
    assert run(tmp_path / "in.jsonl", begun, resume=True, after_resume=resumed.append) == 30
    assert resumed == [10]
    whole = begun.with_name("whole" + begun.suffix)
    run(tmp_path / "in.jsonl", whole)
    assert begun.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.jsonl", begun.name, whole.name])


@pytest.mark.parametrize("begun", KINDS, indirect=True)
def test_another_input_other_examples_or_options_are_refused(begun: Path, tmp_path: Path) -> None:
    part = begun.with_name(begun.name + ".part")
    kept = part.read_bytes()
    with pytest.raises(DataError, match=r"another input: its row 1 differs from row 1 of this one"):
        run(write_input(tmp_path / "other.jsonl", 40, "other"), begun, resume=True)
    with pytest.raises(DataError, match="has 10 rows, the input only 5"):
        run(write_input(tmp_path / "short.jsonl", 5), begun, resume=True)
    with pytest.raises(DataError, match="another classifier"):
        run(tmp_path / "in.jsonl", begun, resume=True, made_with=MADE | {"classifier": "xyz"})
    with pytest.raises(DataError, match="text_column 'text', now 'body'"):
        run(tmp_path / "in.jsonl", begun, resume=True, made_with=MADE | {"text_column": "body"})
    with pytest.raises(DataError, match="use the same options"):
        run(tmp_path / "in.jsonl", begun, resume=True, fields=("label", "score"))
    with pytest.raises(DataError, match="add --resume"):
        run(tmp_path / "in.jsonl", begun)
    assert part.read_bytes() == kept
    part.with_name(part.name + ".json").unlink()
    with pytest.raises(DataError, match="which says what it was made with, is missing"):
        run(tmp_path / "in.jsonl", begun, resume=True)
    assert part.read_bytes() == kept


@pytest.mark.parametrize("begun", [".jsonl", ".csv"], indirect=True)
def test_one_changed_row_is_found(begun: Path, tmp_path: Path) -> None:
    lines = (tmp_path / "in.jsonl").read_text().splitlines(keepends=True)
    lines[7] = lines[7].replace("text 7", "text 8")
    (tmp_path / "in.jsonl").write_text("".join(lines))
    with pytest.raises(DataError, match="its row 8 differs from row 8"):
        run(tmp_path / "in.jsonl", begun, resume=True)


@pytest.mark.parametrize("begun", [".jsonl", ".csv"], indirect=True)
def test_a_damaged_part_is_one_line(begun: Path, tmp_path: Path) -> None:
    part = begun.with_name(begun.name + ".part")
    for content in (b"\xff\xfe\n" * 10, b"{[\n" * 10, b"[1]\n" * 10, b"7\n\x00\n"):
        part.write_bytes(content)
        with pytest.raises(DataError, match="is damaged|another input|has .* rows"):
            run(tmp_path / "in.jsonl", begun, resume=True)
    record = part.with_name(part.name + ".json")
    for text in ("[]", "7", '{"format": 9}', "{"):
        record.write_text(text)
        with pytest.raises(DataError, match=r"out\.(csv|jsonl)\.part"):
            run(tmp_path / "in.jsonl", begun, resume=True)


def test_two_commands_do_not_write_one_file(tmp_path: Path) -> None:
    source, output = write_input(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl"
    entered, go_on, failures = threading.Event(), threading.Event(), []

    def slow(texts: Sequence[str]) -> list[dict[str, Any]]:
        entered.set()
        go_on.wait(30)
        return answer(texts)

    first = threading.Thread(target=lambda: classify_file(read_texts(source), output, slow, fields=("label",)))
    first.start()
    assert entered.wait(30)
    try:
        classify_file(read_texts(source), output, answer, fields=("label",), resume=True)
    except DataError as error:
        failures.append(str(error))
    go_on.set()
    first.join(30)
    assert failures and "being written by another command" in failures[0]
    assert len(output.read_text().splitlines()) == 3 and sorted(p.name for p in tmp_path.iterdir()) == [
        "in.jsonl",
        "out.jsonl",
    ]


@pytest.mark.parametrize("resume", [True, False])
def test_a_kill_before_anything_was_written_leaves_nothing_to_decide(tmp_path: Path, resume: bool) -> None:
    """The part is made before the record that says what it was made with: empty and without one, it is no run's."""
    (tmp_path / "out.jsonl.part").touch()
    assert run(write_input(tmp_path / "in.jsonl", 3), tmp_path / "out.jsonl", resume=resume) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]
