//! `proctor policy accept`: an approver puts a weaker policy into force.

use std::path::PathBuf;

use proctor_core::json::Json;
use proctor_policy::body::sources_json;
use proctor_policy::comparison::weaker_changes;
use proctor_policy::policy::Policy;

use super::{Context, init, records};
use crate::cli::AcceptArgs;
use crate::failure::{CHECKS_FAILED, Failure, OK, Outcome};
use crate::output;
use proctor_engine::access::open_reader;
use proctor_engine::approvers::PolicyStatement;
use proctor_engine::state_dir::{StateDir, read_key};
use proctor_engine::{pinned_policy, policy_files};

pub(super) fn run(context: &Context, arguments: &AcceptArgs) -> Outcome {
    let path = context.config.engine.policy.as_deref();
    let path = path.ok_or_else(|| Failure::from("no policy is configured: name one with `--policy`"))?;
    let policy = policy_files::load(path)
        .map_err(|problems| Failure::list(problems.iter().map(ToString::to_string)))?;
    let reader = open_reader(&context.config.engine.state)?;
    let pinned = pinned_policy(&reader)?.ok_or_else(|| {
        Failure::from("no policy is on record yet: the first one needs nobody to accept it")
    })?;
    drop(reader);
    let digest = policy.digest().to_string();
    if arguments.digest.as_ref().is_some_and(|wanted| *wanted != digest) {
        return Err(Failure::from(format!("{} is policy {digest} now: look at it again", path.display())));
    }
    if pinned.digest == policy.digest() {
        return told(context, &digest, &[], "is in force already");
    }
    let changes = match pinned.compile() {
        Some(before) => weaker_changes(&before, &policy),
        None => vec!["the policy on record cannot be read, so nothing can be compared with it".to_owned()],
    };
    if arguments.dry_run {
        told(context, &digest, &changes, "is not accepted")?;
        return Ok(if changes.is_empty() { OK } else { CHECKS_FAILED });
    }
    let file: PathBuf = match &arguments.credential {
        Some(file) => file.clone(),
        None => init::default_credential()?,
    };
    let key = read_key(&file).map_err(|error| {
        Failure::list([error.to_string(), "an approver credential is made by `proctor init`".to_owned()])
    })?;
    let ledger = StateDir::new(&context.config.engine.state).key()?.verifier_key().name().to_owned();
    let (after, from, to) = (pinned.sequence, pinned.digest, policy.digest());
    let signed = PolicyStatement { ledger, after, from, to }.sign(&key)?;
    let answer = records::command(context, &command(&signed, &policy))?;
    told(context, &digest, &changes, &format!("accepted by {}", output::member(&answer, "approver")))
}

fn command(signed: &str, policy: &Policy) -> Json {
    Json::object()
        .with("op", "accept_policy")
        .with("signed", signed)
        .with("sources", sources_json(policy.sources()))
}

fn told(context: &Context, digest: &str, changes: &[String], what: &str) -> Outcome {
    if context.json {
        let listed = changes.iter().map(|change| Json::from(change.as_str())).collect::<Vec<_>>();
        output::data(Json::object().with("policy", digest).with("weaker", listed).with("status", what))?;
        return Ok(OK);
    }
    for change in changes {
        output::data(format!("weaker: {}", output::shown(change, 400)))?;
    }
    output::data(format!("policy {digest} {what}"))?;
    Ok(OK)
}
