"""Many files on a real local Ray with two actors: the same rows and labels as one process, each once."""

from __future__ import annotations

import errno
import json
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="bulk scoring on Ray needs an extra: pip install 'dmin[ray]'")

import pyarrow
import ray
from pyarrow import parquet

from dmin import FewShotClassifier
from dmin.bulk import ray_cluster
from dmin.bulk.fields import answer_fields, field_names
from dmin.bulk.files import classify_file
from dmin.bulk.inputs import read_texts
from dmin.bulk.ray import Outcome, classify_files
from dmin.data import load_corpus
from dmin.errors import ConfigError, DataError, DminError
from tests.classifier.common import EXAMPLES, letters, quick

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A Ray of this module's own, of two cores."""
    ray_cluster.import_ray()
    ray.init(address="local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In place of Ray, one worker in this process; returns the names it is given."""
    names: list[str] = []

    def run(
        worker: type, arguments: Sequence[Any], items: Sequence[Mapping[str, Any]], *, after_batch: Any, **_: Any
    ) -> Iterator[dict[str, Any]]:
        made = worker(*arguments, "cpu", after_batch)
        for item in items:
            names.append(item["name"])
            report = made({key: [value] for key, value in item.items()})
            yield {key: values[0] for key, values in report.items()}

    monkeypatch.setattr(ray_cluster, "run", run)
    return names


def fill(folder: Path) -> Path:
    """Files of four kinds and unlike sizes, two of the same name; rows without a text among them."""
    texts = list(load_corpus("starter").texts)
    for name, some in {"a/x.parquet": texts[:90], "b/x.parquet": [*texts[90:100], None, " "]}.items():
        (folder / name).parent.mkdir(parents=True)
        parquet.write_table(pyarrow.table({"id": range(len(some)), "text": some}), folder / name)
    (folder / "c.csv").write_text(
        "label,text\n" + "".join(f"mine,{text}\n" for text in texts[100:130] if "," not in text)
    )
    (folder / "d.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[130:150]))
    (folder / "e.txt").write_text("".join(text + "\n" for text in texts[150:160]))
    return folder


def rows(path: Path) -> list[dict[str, Any]]:
    return [row.record for row in read_texts(path, "text")]


def contents(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Name -> rows of each file of answers, the folder's books left out."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and "_dmin" not in path.parts)
    return {str(path.relative_to(folder)): rows(path) for path in found}


def one_process(classifier: FewShotClassifier, source: Path, folder: Path) -> dict[str, list[dict[str, Any]]]:
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        output = folder / path.relative_to(source)
        output = output.with_name(output.name + ".jsonl") if path.suffix == ".txt" else output
        output.parent.mkdir(parents=True, exist_ok=True)
        classify_file(
            read_texts(path, "text"),
            output,
            lambda texts: answer_fields(classifier, texts, 1),
            fields=field_names(1),
            batch=1024,
        )
    return contents(folder)


def test_two_actors_answer_as_one_process_and_go_on_after_a_crash(cluster: None, tmp_path: Path) -> None:
    classifier = FewShotClassifier(device="cpu", reject=0.1, unknown_label="none").fit(EXAMPLES)
    source, output = fill(tmp_path / "in"), tmp_path / "out"
    expected = one_process(classifier, source, tmp_path / "one")
    counted: list[int] = []
    done = classify_files(classifier, str(source), str(output), workers=2, after_batch=counted.append)
    total = sum(map(len, expected.values()))
    assert done == Outcome(5, total, 0) and sum(counted) == total
    assert contents(output) == expected
    assert {row["label"] for row in expected["a/x.parquet"]} <= {*EXAMPLES, "none"}
    assert [row["label"] for row in expected["b/x.parquet"]][-2:] == [None, None]
    assert set(expected["c.csv"][0]) == {"label", "text", "answer_label", "score", "probability"}
    assert not (output / "_dmin" / "scratch").exists()

    kept = (output / "c.csv").stat().st_mtime_ns
    (output / "a/x.parquet").unlink()
    (output / "d.jsonl").write_bytes((output / "d.jsonl").read_bytes()[:-20])
    (output / "_dmin/scratch/tmp123").mkdir(parents=True)
    (output / "_dmin/scratch/tmp123/x.parquet.part").write_text('{"text": "ha')
    (source / "f.csv").write_text("text,id\nnew,1\nbroken\n")
    with pytest.raises(DataError, match=r"f\.csv, row 3: .* \(1 of 3 files failed; the other 2 are answered\)") as said:
        classify_files(classifier, str(source), str(output), workers=2)
    assert "\n" not in str(said.value)
    assert contents(output) == expected and (output / "c.csv").stat().st_mtime_ns == kept
    (source / "f.csv").unlink()
    resumed: list[int] = []
    again = classify_files(classifier, str(source / "**"), str(output), after_resume=resumed.append)
    assert again == Outcome(0, 0, 5) and resumed == [total]
    assert not (output / "_dmin" / "scratch").exists()


class Stubborn:
    """A worker that cannot be made."""

    def __init__(self, *arguments: Any) -> None:
        raise OSError("no such\nmodel")

    def __call__(self, batch: Any) -> Any: ...


def test_what_a_worker_dies_of_is_one_line(cluster: None, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DminError, match="Ray gave up: .*model") as said:
        list(ray_cluster.run(Stubborn, (), [{"name": "a"}], workers=1))
    assert "\n" not in str(said.value) and "Traceback" not in capfd.readouterr().err
    with pytest.raises(ConfigError, match="--device cuda: the Ray cluster has no GPU"):
        list(ray_cluster.run(Stubborn, (), [{"name": "a"}], device="cuda"))


def test_largest_files_first_each_once(here: list[str], tmp_path: Path) -> None:
    source, output = fill(tmp_path / "in"), tmp_path / "out"
    classifier = quick().fit(EXAMPLES)
    done = classify_files(classifier, str(source), str(output))
    sizes = [(source / name).stat().st_size for name in here]
    assert sizes == sorted(sizes, reverse=True) and len(set(here)) == done.files == 5
    assert contents(output) == one_process(classifier, source, tmp_path / "one")
    assert classify_files(classifier, str(source), str(output)) == Outcome(0, 0, 5) and len(here) == 5


def test_other_options_are_refused(here: list[str], tmp_path: Path) -> None:
    source, output = str(fill(tmp_path / "in") / "*.jsonl"), str(tmp_path / "out")
    classify_files(quick().fit(EXAMPLES), source, output)
    with pytest.raises(DataError, match="top_k 1, now 2"):
        classify_files(quick().fit(EXAMPLES), source, output, top_k=2)
    with pytest.raises(DataError, match="another classifier"):
        classify_files(quick(reject=0.5).fit(EXAMPLES), source, output)
    with pytest.raises(DataError, match="another classifier"):
        classify_files(quick().fit(EXAMPLES | {"more": ["one more"]}), source, output)
    shutil.copytree(tmp_path / "in", tmp_path / "other")
    with pytest.raises(DataError, match="input .*in', now .*other'"):
        classify_files(quick().fit(EXAMPLES), str(tmp_path / "other" / "*.jsonl"), output)
    assert len(here) == 1
    # A wider pattern over the same folder is more of the same.
    assert classify_files(quick().fit(EXAMPLES), str(tmp_path / "in" / "*.*"), output).files == 2


def test_answers_on_a_file_system_that_is_no_disk(here: list[str], tmp_path: Path) -> None:
    from dmin.bulk.remote import open_place

    source = fill(tmp_path / "in")
    classifier = quick().fit(EXAMPLES)
    for path in source.rglob("*.*"):
        (open_place(f"memory://{source}") / str(path.relative_to(source))).store(
            path, open_place(f"memory://{tmp_path}/part")
        )
    address = f"memory://{tmp_path}/out"
    output = open_place(address)
    assert classify_files(classifier, f"memory://{source}", address).files == 5
    assert classify_files(classifier, f"memory://{source}/**", address) == Outcome(0, 0, 5)
    for name, _ in output.files():
        if not name.startswith("_dmin"):
            (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "copy" / name).write_bytes((output / name).read() or b"")
    assert contents(tmp_path / "copy") == one_process(classifier, source, tmp_path / "one")
    assert not any("scratch" in name for name, _ in output.files())


def test_a_note_of_a_worker_arrives_once(here: list[str], tmp_path: Path) -> None:
    def warns(texts: Sequence[str]) -> Any:
        if len(texts) > 8:
            warnings.warn("some texts were cut", stacklevel=2)
        return letters(texts)

    classifier = FewShotClassifier(encoder=warns, use_names=False).fit(EXAMPLES)
    with pytest.warns(UserWarning, match="were cut") as notes:
        classify_files(classifier, str(fill(tmp_path / "in")), str(tmp_path / "out"))
    assert len(notes) == 1


def test_wrong_options_and_broken_files_are_one_line(
    here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, classifier = fill(tmp_path / "in"), quick().fit(EXAMPLES)
    output = tmp_path / "out"
    with pytest.raises(DataError, match=r"no column 'txt' \(did you mean 'text'\?\); it has id, text"):
        classify_files(classifier, str(source), str(output), column="txt")
    with pytest.raises(DataError, match="no file matches"):
        classify_files(classifier, str(tmp_path / "*.parquet"), str(output))
    with pytest.raises(ConfigError, match="--workers 0: at least 1"):
        classify_files(classifier, str(source), str(output), workers=0)
    for among in (source, source / "out"):
        with pytest.raises(ConfigError, match="lies among the inputs"):
            classify_files(classifier, str(source), str(among))
    with pytest.raises(ConfigError, match="lies among the inputs"):
        classify_files(classifier, str(source / "*.csv"), str(source))
    (source / "e.txt.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(DataError, match=r"e.txt and e.txt.jsonl would both become e.txt.jsonl"):
        classify_files(classifier, str(source), str(output))
    assert not output.exists() and not here
    (source / "e.txt.jsonl").unlink()
    (source / "d.jsonl").write_text('{"text": 7}\n')
    with pytest.raises(
        DataError, match=r"d.jsonl, row 1: the text is 7 \(int\), not a string .* \(1 of 5 files failed"
    ):
        classify_files(classifier, str(source), str(output))


def test_a_full_disk_is_one_line(here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dmin.bulk.files.format_lines", full)
    with pytest.raises(DataError, match="cannot write .*out/d.jsonl: .*No space left on device") as said:
        classify_files(quick().fit(EXAMPLES), str(fill(tmp_path / "in") / "d.jsonl"), str(tmp_path / "out"))
    assert "--resume" not in str(said.value)


def test_without_ray_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ConfigError, match=r'--engine ray needs an extra: pip install "dmin\[ray\]"'):
        classify_files(quick(), str(tmp_path), str(tmp_path / "out"))


def test_workers_answer_by_the_same_stages(here: list[str], tmp_path: Path) -> None:
    examples = {label: list(texts[:5]) for label, texts in load_corpus("starter").examples.items()}
    classifier = FewShotClassifier(encoder="cascade").fit(examples)
    texts = [texts[6] for texts in load_corpus("starter").examples.values()]
    stages = {answer.stage for answer in classifier.answer(texts)}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("\n".join(texts))
    classify_files(classifier, str(tmp_path / "in"), str(tmp_path / "out"))
    found = [json.loads(line) for line in next((tmp_path / "out").glob("a*.jsonl")).read_text().splitlines()]
    expected = answer_fields(classifier, texts, 1)
    assert [{name: line[name] for name in ("label", "score")} for line in found] == [
        {name: line[name] for name in ("label", "score")} for line in expected
    ]
    assert stages == {1, 2}
