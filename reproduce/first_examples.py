"""The first example of each class of a labelled JSONL file: first_examples.py SOURCE TARGET."""

from __future__ import annotations

import json
import sys
from pathlib import Path

first: dict[str, str] = {}
for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
    first.setdefault(json.loads(line)["label"], line)
Path(sys.argv[2]).write_text("\n".join(first.values()) + "\n", encoding="utf-8")
