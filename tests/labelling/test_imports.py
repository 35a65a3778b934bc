"""What labelling does not bring along."""

from __future__ import annotations

import subprocess
import sys


def test_labelling_does_not_import_torch() -> None:
    code = "import sys, dmin.labelling; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
