//! Followers of the ledger while a server runs: Agent Assembly's chained log, and the webhook.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::config::{Config, WebhookConfig};
use crate::failure::Failure;
use proctor_core::json::Json;
use proctor_engine::access::local_caller;
use proctor_engine::{Engine, Report, Spent};
use proctor_follow::{ChainFollower, EventKind, Handle, UnknownEvent, WebhookFollower, WebhookSettings};

/// Time limit of completing the chained log when a server stops; what is left is completed at the next start.
const LOG_DRAIN: Duration = Duration::from_secs(60);

/// Time limit of the webhook when a server stops; what is left is sent at the next start.
const WEBHOOK_DRAIN: Duration = Duration::from_secs(3);

/// The followers of a server.
pub struct Followers {
    log: Option<Handle>,
    webhook: Option<Handle>,
}

impl Followers {
    /// Starts those that are configured.
    pub fn start(config: &Config, engine: &Arc<Engine>) -> Result<Followers, Failure> {
        let reader = || engine.ledger().reader();
        let log = config.assembly.audit_dir.as_deref().map(|folder| {
            let recorder = Arc::clone(engine);
            ChainFollower::start(folder, reader(), move |problem| report_tampering(&recorder, problem))
        });
        let webhook = config.webhook.as_ref().map(|webhook| -> Result<Handle, Failure> {
            Ok(WebhookFollower::start(webhook_settings(webhook)?, reader(), &config.engine.state)?)
        });
        Ok(Followers { log: log.transpose()?, webhook: webhook.transpose()? })
    }

    /// Drains the ledger, whose writer has been finished, and ends the followers.
    pub fn finish(self) {
        let followers =
            [("the audit log", self.log, LOG_DRAIN), ("the webhook", self.webhook, WEBHOOK_DRAIN)];
        for (name, follower, time) in followers {
            let ended = follower.map(|follower| follower.finish(Instant::now() + time));
            if let Some(Err(problem)) = ended {
                log::info!("{name} is not complete yet, the next start goes on with it: {problem}");
            }
        }
    }
}

/// Reports a changed audit log on stderr and as an alarm.
fn report_tampering(engine: &Engine, problem: &str) {
    log::error!("{problem}");
    let uid = rustix::process::getuid().as_raw();
    let report = Report::Observation {
        code: "audit_log".to_owned(),
        data: Json::object().with("verified", false),
        alarms: vec![("audit_log_tampered", problem.to_owned())],
        spent: Spent::default(),
    };
    let recorded = engine.report(&local_caller(uid, "", "", ""), "proctor", "audit-log", "audit", report);
    if let Err(problem) = recorded {
        log::error!("the alarm about the audit log was not recorded: {problem}");
    }
}

fn webhook_settings(config: &WebhookConfig) -> Result<WebhookSettings, Failure> {
    let secret = match (&config.secret_env, &config.secret_file) {
        (None, None) => None,
        (Some(variable), None) => {
            let secret = std::env::var(variable);
            Some(secret.map_err(|_| format!("webhook: the variable `{variable}` is not set"))?)
        }
        (None, Some(file)) => {
            let secret = std::fs::read_to_string(file);
            Some(secret.map_err(|error| format!("webhook: {}: {error}", file.display()))?)
        }
        (Some(_), Some(_)) => return Err("webhook: give `secret_env` or `secret_file`, not both".into()),
    };
    let secret = secret.map(|secret| Zeroizing::new(secret.trim_end().to_owned()));
    if secret.as_ref().is_some_and(|secret| secret.len() < 16) {
        return Err("webhook: a secret has at least 16 bytes".into());
    }
    let events = match &config.events {
        None => EventKind::usual(),
        Some(words) => words.iter().map(|word| word.parse()).collect::<Result<_, UnknownEvent>>()?,
    };
    Ok(WebhookSettings { url: config.url.clone(), secret, events })
}
