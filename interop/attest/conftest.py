"""Every test has a home and a cache of its own, and no key of any vendor."""

import json
import os
import subprocess
import urllib.request

import pytest
from support import PATIENCE


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith("ATTEST_") and name not in ("ATTEST_ENGINE_PATH", "ATTEST_ENGINE_NO_DOWNLOAD"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ATTEST_CACHE_DIR", str(home / "cache"))
    return home


class Double:
    """A stand-in for a vendor of models, which says what it is told to say."""

    key = "interop-key-0123456789"

    def __init__(self, address):
        self.address = address

    def control(self, method, body=None):
        request = urllib.request.Request(
            f"http://{self.address}/control",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=PATIENCE) as answer:
            return answer.read()

    def script(self, *replies):
        self.control("POST", {"replies": list(replies)})

    def verdict(self, score, **more):
        """The reply of a judge."""
        return {"text": json.dumps({"score": score, "explanation": f"it is worth {score}"}), **more}

    def seen(self):
        return json.loads(self.control("GET"))["requests"]


@pytest.fixture(scope="session")
def vendor_process():
    process = subprocess.Popen(
        [os.environ["VENDOR_DOUBLE"], "--key", Double.key, "--until-stdin-ends"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        yield Double(line.split()[-1])
        process.stdin.close()
        process.wait(PATIENCE)


@pytest.fixture
def double(vendor_process, own_home, monkeypatch):
    """The stand-in with an empty script, and an environment that leads engines to it."""
    vendor_process.control("DELETE")
    base = f"http://{vendor_process.address}/v1"
    for name, value in {
        "ATTEST_OPENAI_API_KEY": Double.key,
        "ATTEST_JUDGE_BASE_URL": base,
        "ATTEST_EMBEDDING_BASE_URL": base,
        "ATTEST_JUDGE_MODEL": "gpt-4.1",
        "ATTEST_JUDGE_RPM": "60000",
        "ATTEST_JUDGE_BURST": "1000",
    }.items():
        monkeypatch.setenv(name, value)
    return vendor_process
