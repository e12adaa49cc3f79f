//! Agent in the registry: the fold of a record, and the row.

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, Registration};
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use super::super::row::{Items, Row, Text, quoted};
use super::FOLD;
use crate::question::Stop;

/// The cause of what people order.
const OPERATOR: &str = "operator";

/// The most different causes that are told apart; further ones count as the operator's.
const MAX_CAUSES: usize = 16;

/// Registry entry of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInfo {
    /// Principal.
    pub principal: String,
    /// Agent identifier, as registered.
    pub agent: String,
    /// Team.
    pub team: String,
    /// Organisation.
    pub org: String,
    /// Registration; `None`: it never registered, and is only here because it is stopped.
    pub registration: Option<Registration>,
    /// Time of the first registration.
    pub registered_at: Timestamp,
    /// The sequence of that record.
    pub registered_seq: u64,
    /// Whether it has deregistered.
    pub is_deregistered: bool,
    /// Whether its heartbeats have stopped.
    pub is_offline: bool,
    /// Causes of its own suspension, with reasons, in order.
    pub suspended: Vec<(String, String)>,
    /// Reason for which it was killed, if it was.
    pub killed: Option<String>,
    /// Whether it goes on without a parent that is gone.
    pub is_adrift: bool,
    /// The policy that it has heard of.
    pub told: Option<Digest>,
    /// Last order (`suspended`, `resumed` or `killed`) and its reason.
    pub last_order: Option<(String, String)>,
}

/// Applies a record to an entry; `None`: the entry is removed.
pub(super) fn after(
    before: Option<&AgentInfo>,
    seq: u64,
    envelope: &Envelope,
    parent_is_gone: bool,
) -> Option<AgentInfo> {
    let known = before.cloned();
    match (envelope.code.as_str(), envelope.registration.as_deref()) {
        ("forgotten", _) => None,
        ("registered", Some(registration)) => {
            let mut agent = known.unwrap_or_else(|| AgentInfo::unregistered(envelope));
            agent.register(seq, envelope, registration);
            Some(agent)
        }
        ("suspended", _) => {
            let mut agent = known.unwrap_or_else(|| AgentInfo::unregistered(envelope));
            agent.suspend(&envelope.name, &envelope.rule);
            agent.order(envelope);
            Some(agent)
        }
        ("killed", _) => {
            let mut agent = known.unwrap_or_else(|| AgentInfo::unregistered(envelope));
            agent.killed = Some(envelope.rule.clone());
            agent.order(envelope);
            Some(agent)
        }
        _ => {
            let mut agent = known?;
            agent.change(envelope, parent_is_gone);
            (agent.registration.is_some() || agent.is_marked()).then_some(agent)
        }
    }
}

impl AgentInfo {
    /// Whether it is registered now.
    pub fn is_registered(&self) -> bool {
        self.registration.is_some() && !self.is_deregistered
    }

    /// The principal that started it; empty if none did.
    pub fn parent(&self) -> &str {
        self.registration.as_ref().map_or("", |registration| &registration.parent)
    }

    /// Caller, as the policy sees it.
    pub fn caller(&self) -> Caller {
        Caller { principal: self.principal.clone(), team: self.team.clone(), org: self.org.clone() }
    }

    /// Whether it is killed or suspended itself.
    pub fn is_marked(&self) -> bool {
        self.killed.is_some() || !self.suspended.is_empty()
    }

    /// Stop of the agent itself, whatever its ancestors' are.
    pub(super) fn own_stop(&self) -> Option<Stop> {
        let stop = |rule: &str, what: String, why: &str| {
            let reason = if why.is_empty() { what } else { format!("{what}: {why}") };
            Some(Stop { rule: rule.to_owned(), reason })
        };
        if let Some(why) = &self.killed {
            return stop("agent.killed", "agent is killed".to_owned(), why);
        }
        if let Some((cause, why)) = self.suspended.first() {
            return stop("agent.suspended", format!("agent is suspended ({cause})"), why);
        }
        if self.is_deregistered {
            return stop("agent.deregistered", "agent is deregistered".to_owned(), "");
        }
        None
    }

    fn unregistered(envelope: &Envelope) -> AgentInfo {
        AgentInfo {
            principal: envelope.principal.clone(),
            agent: envelope.agent.clone(),
            team: envelope.team.clone(),
            org: envelope.org.clone(),
            registration: None,
            registered_at: Timestamp::from_micros(0),
            registered_seq: 0,
            is_deregistered: false,
            is_offline: false,
            suspended: Vec::new(),
            killed: None,
            is_adrift: false,
            told: None,
            last_order: None,
        }
    }

    /// Registers the agent. Lineage and team are those of the first registration, so that leaving and coming back does not change them.
    fn register(&mut self, seq: u64, envelope: &Envelope, registration: &Registration) {
        let mut registration = registration.clone();
        if let Some(old) = &mut self.registration {
            registration.parent = std::mem::take(&mut old.parent);
            registration.depth = old.depth;
        } else {
            self.team.clone_from(&envelope.team);
            self.org.clone_from(&envelope.org);
            self.registered_at = envelope.time;
            self.registered_seq = seq;
        }
        self.agent.clone_from(&envelope.agent);
        self.registration = Some(registration);
        self.is_deregistered = false;
        self.is_offline = false;
        self.told = envelope.policy;
    }

    /// Being suspended again for the same cause changes the reason.
    fn suspend(&mut self, cause: &str, reason: &str) {
        let is_known = self.suspended.iter().any(|(known, _)| known == cause);
        let cause = if is_known || self.suspended.len() < MAX_CAUSES { cause } else { OPERATOR };
        match self.suspended.iter_mut().find(|(known, _)| known == cause) {
            Some((_, known)) => reason.clone_into(known),
            None => self.suspended.push((cause.to_owned(), reason.to_owned())),
        }
    }

    fn order(&mut self, envelope: &Envelope) {
        self.last_order = Some((envelope.code.clone(), envelope.rule.clone()));
    }

    /// Applies the records that only matter for a known agent.
    fn change(&mut self, envelope: &Envelope, parent_is_gone: bool) {
        match envelope.code.as_str() {
            "token" if !self.is_deregistered => {
                if let (Some(own), Some(new)) = (&mut self.registration, &envelope.registration) {
                    own.token = new.token;
                }
            }
            "deregistered" => {
                if let Some(own) = &mut self.registration {
                    own.token = None;
                    self.is_deregistered = true;
                }
            }
            "resumed" => {
                if envelope.name == OPERATOR {
                    self.suspended.clear();
                    self.killed = None;
                    self.is_adrift |= parent_is_gone;
                } else {
                    self.suspended.retain(|(cause, _)| *cause != envelope.name);
                }
                self.order(envelope);
            }
            "offline" => self.is_offline = true,
            "online" => self.is_offline = false,
            "told" => self.told = envelope.policy,
            _ => {}
        }
    }

    pub(super) fn row(&self) -> Row {
        let flags =
            u8::from(self.is_deregistered) | u8::from(self.is_offline) << 1 | u8::from(self.is_adrift) << 2;
        let text = Text::new()
            .text(&self.agent)
            .text(&self.team)
            .text(&self.org)
            .int(self.registered_at.micros())
            .int(self.registered_seq)
            .int(flags)
            .text(&self.told.map(|told| told.to_string()).unwrap_or_default());
        let text = texts(text, self.killed.as_deref());
        let text = texts(text, self.last_order.iter().flat_map(|(code, why)| [code.as_str(), why]));
        let text = texts(text, self.suspended.iter().flat_map(|(cause, why)| [cause.as_str(), why]));
        Row::put(
            FOLD,
            &quoted(&self.principal),
            match &self.registration {
                Some(registration) => write_registration(text, registration),
                None => text,
            },
        )
    }

    pub(super) fn load(principal: &str, value: &Json) -> Option<AgentInfo> {
        let mut items = Items::of(value)?;
        let (agent, team, org) = (owned(&mut items)?, owned(&mut items)?, owned(&mut items)?);
        let registered_at = Timestamp::from_micros(items.int()?);
        let registered_seq = items.int()?;
        let flags: u8 = items.int().filter(|flags| *flags < 8)?;
        let told = digest(items.text()?)?;
        let killed = read_texts(&mut items, 1)?.pop();
        let mut last_order = pairs(read_texts(&mut items, 2)?)?;
        let suspended = pairs(read_texts(&mut items, MAX_CAUSES * 2 + 2)?)?;
        let registration = if items.is_at_end() { None } else { Some(read_registration(&mut items)?) };
        items.end()?;
        Some(AgentInfo {
            principal: principal.to_owned(),
            agent,
            team,
            org,
            registration,
            registered_at,
            registered_seq,
            is_deregistered: flags & 1 != 0,
            is_offline: flags & 2 != 0,
            suspended,
            killed,
            is_adrift: flags & 4 != 0,
            told,
            last_order: last_order.pop(),
        })
    }
}

fn write_registration(text: Text, registration: &Registration) -> Text {
    text.text(&registration.token.map(|token| token.to_string()).unwrap_or_default())
        .text(&registration.name)
        .text(&registration.risk)
        .text(&registration.parent)
        .int(registration.depth)
        .int(registration.max_child_depth.map_or(-1, i64::from))
        .int(u8::from(registration.observe))
        .text(&registration.reason)
        .text(&registration.tool)
}

fn read_registration(items: &mut Items<'_>) -> Option<Registration> {
    Some(Registration {
        token: digest(items.text()?)?,
        name: owned(items)?,
        risk: owned(items)?,
        parent: owned(items)?,
        depth: items.int()?,
        max_child_depth: match items.int::<i64>()? {
            -1 => None,
            depth => Some(u32::try_from(depth).ok()?),
        },
        observe: match items.int::<u8>()? {
            0 => false,
            1 => true,
            _ => return None,
        },
        reason: owned(items)?,
        tool: owned(items)?,
    })
}

/// Texts with their number before them.
fn texts<'t>(text: Text, texts: impl IntoIterator<Item = &'t str>) -> Text {
    let texts: Vec<&str> = texts.into_iter().collect();
    let text = text.int(u32::try_from(texts.len()).unwrap_or(u32::MAX));
    texts.into_iter().fold(text, Text::text)
}

fn read_texts(items: &mut Items<'_>, most: usize) -> Option<Vec<String>> {
    let count = items.int::<usize>().filter(|count| *count <= most)?;
    (0..count).map(|_| owned(items)).collect()
}

fn pairs(texts: Vec<String>) -> Option<Vec<(String, String)>> {
    let mut texts = texts.into_iter();
    let mut pairs = Vec::new();
    while let Some(first) = texts.next() {
        pairs.push((first, texts.next()?));
    }
    Some(pairs)
}

fn owned(items: &mut Items<'_>) -> Option<String> {
    items.text().map(str::to_owned)
}

/// An empty text is no digest.
fn digest(text: &str) -> Option<Option<Digest>> {
    if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
}
