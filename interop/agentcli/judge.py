"""Other people's servers and programs judge `agentcli`. Arguments: the binary, the folder with the installed judges."""

import hashlib
import http.server
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import regopy

HERE = Path(__file__).parent
BINARY, HOME = sys.argv[1:]
PYTHON = f"{HOME}/bin/python"


class AgentCli:
    """A client of `agentcli serve`, through the link of that name."""

    def __init__(self, folder, **environment):
        link = Path(folder) / "agentcli"
        if not link.exists():
            link.symlink_to(BINARY)
        clean = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = {**clean, "AGENTCLI_HOME": str(Path(folder) / "home"), **environment}
        self.program = str(link)
        self.folder = folder
        self.process = subprocess.Popen(
            [self.program, "serve"], cwd=folder, env=self.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert json.loads(self.process.stdout.readline())["method"] == "agentcli.ready"

    def call(self, method, **params):
        request = {"jsonrpc": "2.0", "id": 1, "method": f"agentcli.{method}", "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def run(self, *words, **environment):
        ended = subprocess.run(
            [self.program, *words], cwd=self.folder, env={**self.environment, **environment}, capture_output=True, text=True, timeout=60
        )
        return ended.returncode, ended.stdout, ended.stderr

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0


def manifest(task=None, **profiles):
    shell = {"program": "/bin/true"}
    own = {"id": "a", "name": "A", "target": {"session_target": "shell"}, "shell": shell, "schedule": {"cron": "0 9 * * *"}}
    workflow = {"id": "w", "name": "W", "tasks": [{**own, **(task or {})}]}
    return {"version": "0.2", **profiles, "workflows": [workflow]}


def with_identity(provider, config, **auth):
    profile = {"id": "p", "provider": provider, "auth": {"mode": "service", "provider_config": config, **auth}}
    return manifest({"identity": {"ref": "p"}}, identity_profiles=[profile])


def resolved(client, document):
    answer = client.call("identity.resolve", manifest=document, taskId="a")
    assert "result" in answer, answer
    return answer["result"]["resolved_identity"]


def judge_oauth(folder):
    """Client credentials at a certified OAuth server; its token as an authorization proof over its own key set."""
    document = None
    client = AgentCli(folder, SECRET_POST="planted-client_secret_post", SECRET_BASIC="planted-client_secret_basic")
    server = subprocess.Popen(
        ["node", str(HERE / "oauth_server.mjs"), "placeholder"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "NODE_PATH": f"{HOME}/node_modules"},
    )
    try:
        port = server.stdout.readline().strip()
        base = f"http://127.0.0.1:{port}"
        for method, variable in (("client_secret_post", "SECRET_POST"), ("client_secret_basic", "SECRET_BASIC")):
            config = {
                "token_endpoint": f"{base}/token",
                "client_id": method,
                "client_secret": {"value_from": {"env": variable}},
                **({"client_auth": "basic"} if method == "client_secret_basic" else {}),
            }
            document = with_identity("oidc-client-credentials", config, scopes=["jobs:run"])
            session = resolved(client, document)
            text = json.dumps(session)
            assert session["credential_summary"]["credential_types"] == ["access_token"], session
            assert "planted-" not in text and "eyJ" not in text, "a secret is shown"
        wrong = with_identity(
            "oidc-client-credentials",
            {"token_endpoint": f"{base}/token", "client_id": "client_secret_post", "client_secret": "wrong"},
            scopes=["jobs:run"],
        )
        refused = client.call("identity.resolve", manifest=wrong, taskId="a")
        assert refused["error"]["data"]["code"] == "token_request_failed", refused
    finally:
        server.kill()
        server.wait()
        client.close()


def judge_sts(folder):
    """AssumeRole and AssumeRoleWithWebIdentity at moto's STS."""
    server = subprocess.Popen(
        [PYTHON, "-c", "from moto.server import ThreadedMotoServer; s = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False); s.start();"
         " print(s.get_host_and_port()[1], flush=True); import time; time.sleep(300)"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    try:
        port = server.stdout.readline().strip()
        token = Path(folder) / "web-token"
        token.write_text("eyJ.web.identity")
        token.chmod(0o600)
        endpoint = {"AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{port}"}
        keys = {"AWS_ACCESS_KEY_ID": "AKIAJUDGEJUDGEJUDGE1", "AWS_SECRET_ACCESS_KEY": "planted-secret-of-the-caller"}
        config = {"role_arn": "arn:aws:iam::123456789012:role/jobs", "region": "eu-west-1", "session_name": "judge"}
        document = with_identity("aws-sts-assume-role", config)
        for environment in ({**endpoint, **keys}, {**endpoint, "AWS_WEB_IDENTITY_TOKEN_FILE": str(token)}):
            client = AgentCli(folder, **environment)
            session = resolved(client, document)
            client.close()
            text = json.dumps(session)
            assert session["provider"] == "aws-sts-assume-role" and session["delegation_validation"]["valid"], session
            assert "planted-secret" not in text and "AKIAJUDGE" not in text, "a credential of the caller is shown"
    finally:
        server.kill()
        server.wait()


def judge_signature(folder):
    """The signature of an STS request is the one that botocore makes of the same request."""
    seen = []

    class Capture(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((dict(self.headers.items()), body))
            self.send_response(403)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Capture)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_port}"
    secret, token = "wJalr/Planted+Secret", "Planted//Session+Token=="
    client = AgentCli(
        folder, AWS_ENDPOINT_URL_STS=f"http://{address}", AWS_ACCESS_KEY_ID="AKIAJUDGEJUDGEJUDGE1", AWS_SECRET_ACCESS_KEY=secret, AWS_SESSION_TOKEN=token
    )
    config = {
        "role_arn": "arn:aws:iam::123456789012:role/jobs", "region": "eu-central-1", "session_name": "a+b=c,d.e@f-g", "external_id": "x y/z~é",
    }
    client.call("identity.resolve", manifest=with_identity("aws-sts-assume-role", config), taskId="a")
    client.close()
    server.shutdown()
    assert len(seen) == 1, "one request was expected"
    headers, body = seen[0]
    lowered = {name.lower(): value for name, value in headers.items()}
    signed = lowered["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    request = botocore.awsrequest.AWSRequest(method="POST", url=f"http://{address}/", data=body)
    for name in signed:
        if name not in ("host", "x-amz-date", "x-amz-security-token"):
            request.headers[name] = lowered[name]
    credentials = botocore.credentials.Credentials("AKIAJUDGEJUDGEJUDGE1", secret, token)
    auth = botocore.auth.SigV4Auth(credentials, "sts", "eu-central-1")
    request.context["timestamp"] = lowered["x-amz-date"]
    request.headers["X-Amz-Date"] = lowered["x-amz-date"]
    request.headers["X-Amz-Security-Token"] = token
    canonical = auth.canonical_request(request)
    expected = auth.signature(auth.string_to_sign(request, canonical), request)
    assert lowered["authorization"].endswith(f"Signature={expected}"), (lowered["authorization"], expected, canonical)


REGO = """
package judge
import rego.v1
default allow := false
allow if { input.identity.trust_level == "autonomous"; not bad }
allow if { input.command.program == "/bin/true"; count(input.command.args) < 3 }
bad if { some arg in input.command.args; startswith(arg, "--force") }
"""


def judge_rego(folder):
    """Embedded Rego decides as regopy does on the same request."""
    client = AgentCli(folder)
    draw = random.Random(20261118)
    for _ in range(40):
        args = [draw.choice(["x", "--force", "--forced", "y z"]) for _ in range(draw.randrange(5))]
        program = draw.choice(["/bin/true", "/bin/false"])
        document = manifest(
            {"shell": {"program": program, "args": args}, "authorization": {"ref": "z"}},
            authorization_profiles=[{"id": "z", "provider": "opa", "provider_config": {"module": REGO, "query": "data.judge.allow"}}],
        )
        answer = client.call("authorization.evaluate", manifest=document, taskId="a")
        assert "result" in answer, answer
        engine = regopy.Interpreter()
        engine.add_module("judge", REGO)
        request = {"source": {"workflow_id": "w", "task_id": "a"}, "identity": {}, "command": {"program": program, "args": args}}
        engine.set_input(request)
        said = str(engine.query("data.judge.allow"))
        # What is undefined permits nothing.
        theirs = said != "undefined" and json.loads(said)["expressions"][0]
        assert answer["result"]["decision"]["allowed"] == theirs, (document, theirs)
    client.close()


def judge_evidence(folder):
    """Evidence of a run verifies with ssh-keygen; a signature of ssh-keygen verifies as a proof."""
    Path(folder, "policy.yaml").write_text('version: "1"\ndefault: allow\n')
    for kind, extra in (("ed25519", []), ("ecdsa", ["-b", "256"]), ("rsa", ["-b", "3072"])):
        key = Path(folder, f"key-{kind}")
        subprocess.run(["ssh-keygen", "-q", "-t", kind, *extra, "-N", "", "-f", str(key)], check=True)
        public = Path(f"{key}.pub").read_text().split()
        signers = Path(folder, f"signers-{kind}")
        signers.write_text(f'judge@example.com namespaces="agentcli" {public[0]} {public[1]}\n')

        client = AgentCli(folder, PROCTOR_POLICY=str(Path(folder, "policy.yaml")))
        profile = {"id": "e", "provider": "ssh", "provider_config": {"key_file": str(key), "principal": "judge@example.com"}}
        document = manifest({"evidence": {"ref": "e"}}, evidence_profiles=[profile])
        path = Path(folder, "m.json")
        path.write_text(json.dumps(document))
        code, out, err = client.run("exec", "m.json", "a")
        assert code == 0, (out, err)
        envelope = json.loads(out)["evidence"]["envelope"]
        signature = envelope.pop("signature")
        text = json.dumps(envelope, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        sig = Path(folder, "envelope.sig")
        sig.write_text(signature)
        verify = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", "judge@example.com", "-n", "agentcli", "-s", str(sig)]
        assert subprocess.run(verify, input=text.encode(), capture_output=True).returncode == 0, "ssh-keygen refuses our evidence"
        assert subprocess.run(verify, input=text.replace("a", "b", 1).encode(), capture_output=True).returncode != 0
        code, out, err = client.run("verify", json.loads(out)["execution_id"], "--allowed-signers", str(signers))
        assert code == 0, (out, err)

        proof = {
            "id": "s", "method": "detached-signature", "allowed_signers": str(signers), "principal": "judge@example.com",
            "namespace": "agentcli", "proof": {"value_from": {"file": "manifest.sig"}},
        }
        signed = manifest({"authorization_proof": {"ref": "s"}}, authorization_proof_profiles=[proof])
        canonical = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        made = subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", "agentcli"], input=canonical.encode(), capture_output=True, check=True)
        Path(folder, "manifest.sig").write_bytes(made.stdout)
        answer = client.call("authorizationProof.verify", manifest=signed, taskId="a")
        assert answer.get("result", {}).get("authorization_proof", {}).get("verified") is True, answer
        assert answer["result"]["manifest_digest"] == "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
        made = subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", "other"], input=canonical.encode(), capture_output=True, check=True)
        Path(folder, "manifest.sig").write_bytes(made.stdout)
        refused = client.call("authorizationProof.verify", manifest=signed, taskId="a")
        assert refused.get("error", {}).get("data", {}).get("code") == "authorization_proof_failed", refused
        client.close()


def main():
    judges = [judge_oauth, judge_sts, judge_signature, judge_rego, judge_evidence]
    failed = 0
    for judge in judges:
        with tempfile.TemporaryDirectory() as folder:
            try:
                judge(folder)
                print(f"passed  {judge.__doc__}")
            except Exception as problem:  # every judge speaks
                failed += 1
                print(f"FAILED  {judge.__doc__}\n  {type(problem).__name__}: {str(problem)[:2000]}")
    print(f"agentcli: {len(judges) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
