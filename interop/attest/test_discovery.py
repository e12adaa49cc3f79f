"""How the SDK finds the engine by itself. Every way to the outside is a closed port, so a download would be a failure."""

import json
import os
import pathlib
import subprocess
import sys

import attest
import pytest
from support import ENGINE, PATIENCE

PROGRAM = """
import asyncio, json
from attest import Assertion, Trace
from attest.client import AttestClient
from attest.engine_manager import EngineManager

async def main():
    manager = EngineManager()
    said = await manager.start()
    asked = Assertion("a", "content", {"target": "output.message", "check": "contains", "value": "x"})
    found = await AttestClient(manager).evaluate_batch(Trace(trace_id="t", output={"message": "x"}), [asked])
    await manager.stop()
    print(json.dumps([said.engine_version, found.results[0].status]))

asyncio.run(main())
"""

CLOSED = "http://127.0.0.1:9"


def discover(folder, **environment):
    """Starts the engine that the SDK finds, in an empty folder: what it said, or why there is none."""
    empty = folder / "empty"
    empty.mkdir()
    proxies = {name: CLOSED for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=empty,
        env={"HOME": str(folder / "home"), "PATH": str(empty), "no_proxy": "", **proxies, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


@pytest.fixture(params=["downloads forbidden", "downloads allowed"])
def downloads(request):
    return {"ATTEST_ENGINE_NO_DOWNLOAD": "1"} if request.param == "downloads forbidden" else {}


def install(folder, version=attest.ENGINE_VERSION):
    """Puts the engine where the SDK keeps its own."""
    place = folder / "home" / ".attest" / "bin"
    place.mkdir(parents=True)
    (place / "attest-engine").symlink_to(os.path.realpath(ENGINE))
    (place / ".engine-version").write_text(version)


FOUND = ["0.9.0", "pass"]


def test_by_its_path(tmp_path, downloads):
    assert discover(tmp_path, ATTEST_ENGINE_PATH=ENGINE, **downloads) == FOUND


def test_on_the_search_path(tmp_path, downloads):
    folder = str(pathlib.Path(ENGINE).parent)
    assert discover(tmp_path, PATH=folder, **downloads) == FOUND


def test_where_the_sdk_keeps_its_own(tmp_path, downloads):
    install(tmp_path)
    assert discover(tmp_path, **downloads) == FOUND


def test_in_the_folder_of_the_project(tmp_path, downloads):
    place = tmp_path / "project" / "bin"
    place.mkdir(parents=True)
    (place / "attest-engine").symlink_to(os.path.realpath(ENGINE))
    assert discover(tmp_path / "project", PATH=str(place), **downloads) == FOUND


def test_one_of_another_version_is_not_taken(tmp_path):
    install(tmp_path, "0.0.1")
    assert "attest-engine" in discover(tmp_path, ATTEST_ENGINE_NO_DOWNLOAD="1")


def test_without_one_there_is_an_error(tmp_path, downloads):
    (tmp_path / "home").mkdir()
    said = discover(tmp_path, **downloads)
    assert isinstance(said, str) and "Error" in said, "these tests would not notice another engine"
