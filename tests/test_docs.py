"""The documentation builds without a warning, and the API pages show the public names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages; a broken link or an unknown name fails the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("classifier", ["FewShotClassifier.fit", "FewShotClassifier.predict_proba", "FewShotClassifier.add_class"]),
        ("data", ["Corpus", "Episode", "load_corpus"]),
        ("encoder", ["Encoder.encode"]),
        ("methods", ["create", "DMIN", "DynamicMemoryRouting.forward", "squash"]),
        ("training", ["TrainConfig"]),
        ("evaluation", ["mean_interval"]),
        ("errors", ["DminError"]),
    ],
)
def test_an_api_page_shows_the_public_names(site: Path, page: str, names: list[str]) -> None:
    text = (site / "reference/api" / f"{page}.html").read_text(encoding="utf-8")
    for name in names:
        assert f'.{name}"' in text, name  # the anchor of its heading


def test_every_page_stands_in_one_of_the_four_groups() -> None:
    groups = {path.relative_to(ROOT / "docs").parts[0] for path in (ROOT / "docs").rglob("*.md")}
    assert groups == {"index.md", "tutorials", "how-to", "explanation", "reference"}
