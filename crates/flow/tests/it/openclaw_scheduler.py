#!/usr/bin/env python3
"""Stand-in for openclaw-scheduler's command line, for tests.

Keeps its jobs in SQLite (SCHEDULER_DB), and answers as release 0.2.4 does: a job that fails validation ends in a trace on the
standard error with an empty standard output, malformed JSON in an error on the standard output, and the deletion of an unknown job
is confirmed.

Environment:
  STAND_IN_LOG       file that gets one line of JSON for each call: its arguments
  STAND_IN_HANDOFF   handoff version that is advertised (2)
  STAND_IN_FEATURES  JSON object that replaces the advertised features
  STAND_IN_FAULT     WORD:COMMAND[:NUMBER], several separated by commas; at the NUMBERth call of COMMAND (every call without a number) do WORD, one of
                     garbage, hang, huge, deep, silent, crash, unconfirmed, other-id, endless-error, kept (a deletion that
                     deletes nothing and says so), unsaid (a deletion that does not say that it deleted), object
"""

import json
import os
import sqlite3
import sys
import time

JOB_COLUMNS = """
id name enabled schedule_cron schedule_tz session_target agent_id payload_kind payload_message payload_model payload_thinking
execution_intent execution_read_only run_timeout_ms overlap_policy max_retries max_queued_dispatches max_pending_approvals
max_trigger_fanout delivery_mode delivery_channel delivery_to delivery_opt_out_reason delivery_guarantee origin parent_id trigger_on
trigger_delay_s trigger_condition approval_required approval_timeout_s approval_auto context_retrieval context_retrieval_limit
output_store_limit_bytes output_excerpt_limit_bytes output_summary_limit_bytes output_offload_threshold_bytes
preferred_session_key auth_profile delete_after_run identity_principal identity_run_as identity_attestation contract_sandbox
contract_allowed_paths contract_network contract_max_cost_usd contract_audit identity_ref identity_subject_kind
identity_subject_principal identity_trust_level identity_delegation_mode identity authorization_proof_ref authorization_proof
authorization_ref authorization evidence_ref evidence contract_required_trust_level contract_trust_enforcement
child_credential_policy schedule_kind schedule_at payload_timeout_seconds payload_scope resource_pool job_class job_type
ttl_hours queued_count created_at updated_at next_run_at last_run_at last_status consecutive_errors
""".split()

RUN_COLUMNS = "id job_id status started_at finished_at duration_ms summary error_message shell_stdout idempotency_key".split()
QUEUE_COLUMNS = "id job_id dispatch_kind status scheduled_for source_run_id created_at claimed_at processed_at".split()
APPROVAL_COLUMNS = "id job_id run_id dispatch_queue_id status requested_at resolved_at resolved_by notes".split()

SENTINEL = "0 0 31 2 *"
DOCUMENTS = ["identity", "authorization_proof", "authorization", "evidence"]
PAIRS = {("main", "systemEvent"), ("shell", "shellCommand"), ("isolated", "systemEvent"), ("isolated", "agentTurn")}


class ValidationError(Exception):
    pass


def connect():
    database = sqlite3.connect(os.environ["SCHEDULER_DB"], timeout=5)
    database.row_factory = sqlite3.Row
    database.execute("PRAGMA journal_mode = WAL")
    for table, columns in [
        ("jobs", JOB_COLUMNS),
        ("runs", RUN_COLUMNS),
        ("job_dispatch_queue", QUEUE_COLUMNS),
        ("approvals", APPROVAL_COLUMNS),
    ]:
        names = ", ".join(f'"{name}"' + (" PRIMARY KEY" if name == "id" else "") for name in columns)
        database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({names})")
    database.commit()
    return database


def check(database, job):
    def demand(condition, text):
        if not condition:
            raise ValidationError(text)

    demand(job.get("name"), "name is required")
    demand((job.get("session_target"), job.get("payload_kind")) in PAIRS, "payload_kind does not fit session_target")
    demand((job.get("run_timeout_ms") or 1) > 0, "run_timeout_ms must be positive")
    parent = job.get("parent_id")
    if parent is None:
        demand(job.get("schedule_cron"), "schedule_cron is required")
        demand(job.get("schedule_cron") != SENTINEL, "schedule_cron never fires")
        demand(len(job["schedule_cron"].split()) in (5, 6), "schedule_cron cannot be parsed")
        demand(job.get("origin"), "origin is required")
        demand(not job.get("trigger_on") and not job.get("trigger_delay_s"), "root jobs have no trigger")
        if job.get("payload_kind") == "agentTurn" and job.get("delivery_mode") == "none":
            demand(job.get("delivery_opt_out_reason"), "delivery_opt_out_reason is required")
    else:
        demand(job.get("trigger_on"), "trigger_on is required")
        depth, seen = 1, {job.get("id")}
        while parent is not None:
            demand(parent not in seen, "jobs form a cycle")
            seen.add(parent)
            row = database.execute("SELECT parent_id FROM jobs WHERE id = ?", [parent]).fetchone()
            demand(row is not None, f"parent {parent} does not exist")
            parent = row["parent_id"]
            depth += 1
        demand(depth <= 10, "chain is too deep")
    if job.get("delivery_mode") in ("announce", "announce-always") and job.get("session_target") != "main":
        demand(job.get("delivery_to"), "delivery_to is required")
    excerpt = job.get("output_excerpt_limit_bytes") or 0
    demand(excerpt <= (job.get("output_store_limit_bytes") or excerpt), "excerpt is larger than store")
    demand((job.get("output_summary_limit_bytes") or excerpt) >= excerpt, "summary is smaller than excerpt")
    for name in DOCUMENTS:
        text = job.get(name)
        if text is not None:
            demand(isinstance(text, str), f"{name} must be JSON text")
            demand(len(text.encode()) <= 32768, f"{name} is too large")
            json.loads(text)
    if job.get("identity") and job.get("session_target") != "shell":
        demand(json.loads(job["identity"]).get("presentation") is None, "identity.presentation is for shell jobs")


def stored(value):
    if isinstance(value, bool):
        return int(value)
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def show(row):
    return {name: row[name] for name in row.keys()}


def add(database, text):
    job = json.loads(text)
    check(database, job)
    job = {"enabled": True, **{name: value for name, value in job.items() if name in JOB_COLUMNS}}
    now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    job["created_at"] = job["updated_at"] = now
    names = ", ".join(f'"{name}"' for name in job)
    marks = ", ".join("?" for _ in job)
    database.execute(f"INSERT INTO jobs ({names}) VALUES ({marks})", [stored(value) for value in job.values()])
    database.commit()
    return {"ok": True, "job": show(database.execute("SELECT * FROM jobs WHERE id = ?", [job["id"]]).fetchone())}


def update(database, identifier, text):
    fields = json.loads(text)
    row = database.execute("SELECT * FROM jobs WHERE id = ?", [identifier]).fetchone()
    if row is None:
        return {"ok": False, "error": "job not found"}
    fields = {name: value for name, value in fields.items() if name in JOB_COLUMNS}
    check(database, {**show(row), **fields})
    names = ", ".join(f'"{name}" = ?' for name in fields)
    values = [stored(value) for value in fields.values()]
    database.execute(f"UPDATE jobs SET {names} WHERE id = ?", [*values, identifier])
    database.commit()
    return {"ok": True, "job": show(database.execute("SELECT * FROM jobs WHERE id = ?", [identifier]).fetchone())}


def capabilities():
    on = ["runtime_identity_resolution", "trust_evaluation", "authorization_proof_verification", "authorization_hook",
          "evidence_generation", "credential_handoff", "audit_export"]
    features = {**{name: True for name in on}, "delegation_validation": False}
    if "STAND_IN_FEATURES" in os.environ:
        features = json.loads(os.environ["STAND_IN_FEATURES"])
    return {"scheduler_version": "0.2.4", "schema_version": 23,
            "handoff_version": os.environ.get("STAND_IN_HANDOFF", "2"), "features": features}


def fault(command):
    """The fault of this call, if it has one."""
    log = os.environ.get("STAND_IN_LOG")
    number = 1
    if log:
        with open(log, encoding="utf-8") as lines:
            number = sum(1 for line in lines if json.loads(line)[: len(command.split())] == command.split())
    for one in os.environ.get("STAND_IN_FAULT", "").split(","):
        word, _, rest = one.partition(":")
        wanted, _, count = rest.partition(":")
        if word and wanted == command and (not count or int(count) == number):
            return word
    return ""


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--json"]:
        arguments = arguments[1:]
    if "STAND_IN_LOG" in os.environ:
        with open(os.environ["STAND_IN_LOG"], "a", encoding="utf-8") as log:
            log.write(json.dumps(arguments) + "\n")
    command = " ".join(arguments[:2]) if arguments[0] == "jobs" else arguments[0]
    word = fault(command)
    if word == "garbage":
        print("<html>not JSON</html>")
        return 0
    if word == "hang":
        # A child that keeps the pipe open, as npm's would.
        os.fork()
        time.sleep(600)
    if word == "huge":
        while True:
            sys.stdout.write("[" + "0," * 4096)
    if word == "deep":
        print("[" * 100000)
        return 0
    if word == "silent":
        return 0
    if word == "unconfirmed":
        print(json.dumps({"job": {}}))
        return 0
    if word == "object":
        print(json.dumps({"jobs": []}))
        return 0
    if word == "crash":
        raise ValidationError("told to fail; key sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789ABCD")
    if word == "endless-error":
        while True:
            sys.stderr.write("x" * 65536)
    database = connect()
    if command == "capabilities":
        answer = capabilities()
    elif command == "jobs list":
        answer = [show(row) for row in database.execute("SELECT * FROM jobs ORDER BY name")]
    elif command in ("jobs add", "jobs update"):
        try:
            json.loads(arguments[-1])
        except ValueError as error:
            print(json.dumps({"ok": False, "error": str(error)}))
            return 1
        answer = add(database, arguments[2]) if command == "jobs add" else update(database, arguments[2], arguments[3])
    elif command == "jobs delete":
        if word != "kept":
            database.execute("DELETE FROM jobs WHERE id = ?", [arguments[2]])
            database.commit()
        answer = {"ok": True, "job_id": arguments[2], "deleted": word not in ("kept", "unsaid")}
    else:
        answer = {"ok": False, "error": f"unknown command {command}"}
    if word == "other-id" and "job" in answer:
        answer["job"]["id"] = "another"
    print(json.dumps(answer))
    return 0 if not isinstance(answer, dict) or answer.get("ok", True) else 1


if __name__ == "__main__":
    sys.exit(main())
