"""The example of docs/attest.md does what the page says."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "attest.md"


def example():
    [block] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return block


def run(folder, text, engine):
    (folder / "test_example.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--attest-engine={engine}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_the_example_is_green_and_can_be_red(tmp_path, request):
    engine = request.config.getoption("--attest-engine")
    green = run(tmp_path, example(), engine)
    assert green.returncode == 0, green.stdout
    assert "1 passed" in green.stdout
    red = run(tmp_path, example().replace('output_contains("refund")', 'output_contains("never")'), engine)
    assert red.returncode == 1, red.stdout
    assert "does not contain `never`" in red.stdout
