//! Compiled policy: all documents and modules in force, immutable.

mod applicable;
mod compile;
mod index;
mod source;

use std::sync::Arc;

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::session::Caller;

use crate::advice::{Advice, CompiledSection};
use crate::condition::Condition;
use crate::document::{CredentialAction, Document, DocumentScope, Rule};
use crate::input::Input;
use crate::modules::Engine;
use crate::scan::{Identifiers, Scanner};

pub(crate) use compile::strictest_credential_action;
pub use source::{Source, SourceRole, module_name, sources_digest};

use index::RuleIndex;

/// All policy sources in force, compiled. Immutable; shared between threads.
pub struct Policy {
    digest: Digest,
    sources: Vec<Source>,
    /// The digest of each source, in the same order: every decision records them, and none hashes them again.
    source_digests: Vec<Digest>,
    documents: Vec<Document>,
    rules: Vec<CompiledRule>,
    index: RuleIndex,
    modules: Vec<CompiledModule>,
    scanner: Scanner,
    credential_action: Option<CredentialAction>,
    advice: Vec<CompiledAdvice>,
    warnings: Vec<crate::lint::Warning>,
}

/// A rule with its condition compiled.
pub(crate) struct CompiledRule {
    pub(crate) document: usize,
    pub(crate) rule: Rule,
    pub(crate) condition: Option<Condition>,
}

pub(crate) struct CompiledModule {
    pub(crate) document: usize,
    pub(crate) engine: Box<dyn Engine>,
}

struct CompiledAdvice {
    document: usize,
    part: Arc<CompiledSection>,
}

impl Policy {
    /// Compiles sources. Reports everything that is wrong with them, or gives the policy.
    ///
    /// ```
    /// use proctor_policy::policy::{Policy, Source};
    /// let text = "version: \"1\"\nrules:\n  - id: no-shell\n    when: action.tool == \"shell\"\n    then: deny\n";
    /// let policy = Policy::compile(vec![Source::document("policy.yaml", text)]).unwrap();
    /// assert_eq!(policy.rule_count(), 1);
    /// let wrong = Policy::compile(vec![Source::document("policy.yaml", "defualt: deny\n")]).err().unwrap();
    /// assert!(wrong[0].to_string().contains("did you mean `default`"));
    /// ```
    pub fn compile(sources: Vec<Source>) -> Result<Policy, Vec<crate::document::Problem>> {
        compile::compile(sources)
    }

    /// The policy without documents: it denies everything.
    pub fn closed() -> Policy {
        compile::closed()
    }

    /// Digest over all sources: their roles, names and contents.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of each source, in the order of [`Policy::sources`].
    pub fn source_digests(&self) -> &[Digest] {
        &self.source_digests
    }

    /// The sources, as they were given, sorted by role and name.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The documents, read.
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Number of rules in all documents.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// Warnings of `lint`.
    pub fn warnings(&self) -> &[crate::lint::Warning] {
        &self.warnings
    }

    /// Ways in which this policy is weaker than closed, in words; empty if it is not.
    pub fn weakenings(&self) -> Vec<String> {
        let mut all = Vec::new();
        for document in &self.documents {
            let file = &document.file;
            if document.default.is_none() && document.rules.is_none() {
                all.push(format!(
                    "`{file}` has neither `default` nor `rules`: what no section restricts is allowed"
                ));
            } else if document.default.as_ref().is_some_and(|default| default.value == Effect::Allow) {
                all.push(format!("`{file}` says `default: allow`"));
            }
            if document.budget.as_ref().is_some_and(|budget| budget.trust_reports) {
                all.push(format!("`{file}` trusts what agents report of their own costs"));
            }
            if !document.observe.is_empty() {
                all.push(format!("`{file}` lets agents be only observed, if they ask for it"));
            }
        }
        all
    }

    /// Advice for a caller, from all documents that apply to it.
    pub fn advice(&self, caller: &Caller) -> Advice {
        let about = |advice: &&CompiledAdvice| {
            self.documents.get(advice.document).is_some_and(|document| covers(&document.scope, caller))
        };
        Advice::new(self.advice.iter().filter(about).map(|advice| Arc::clone(&advice.part)).collect())
    }

    pub(crate) fn scanner(&self) -> &Scanner {
        &self.scanner
    }

    /// Identifiers as records hold them under this policy, whose own patterns cover them, too.
    pub fn identifiers<'a>(&'a self, key: &'a [u8; 32]) -> Identifiers<'a> {
        Identifiers::new(&self.scanner, key)
    }

    /// Whether e-mail addresses are cut like secrets: all documents are of sections only, as the released gateway has them, some document
    /// says what to do about credentials, or has a rule that redacts what is found.
    pub(crate) fn redacts_email(&self) -> bool {
        let is_of_sections = |document: &Document| document.rules.is_none() && document.default.is_none();
        self.credential_action.is_some()
            || (!self.documents.is_empty() && self.documents.iter().all(is_of_sections))
            || self.rules.iter().any(|rule| rule.rule.then == Effect::Redact && rule.rule.paths.is_none())
    }

    pub(crate) fn modules(&self) -> &[CompiledModule] {
        &self.modules
    }

    /// All rules, in document order.
    pub(crate) fn rules(&self) -> &[CompiledRule] {
        &self.rules
    }

    /// The rules that may match the action, in document order.
    pub(crate) fn candidate_rules(&self, input: &Input) -> impl Iterator<Item = &CompiledRule> {
        self.index.candidates(&input.facts).into_iter().filter_map(|number| self.rules.get(number))
    }
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Policy({}, {} documents, {} rules)", self.digest, self.documents.len(), self.rules.len())
    }
}

/// Whether a document applies to this action.
pub(crate) fn applies(scope: &DocumentScope, input: &Input) -> bool {
    applies_to(scope, input, &input.caller)
}

/// Whether a document would apply to this action if it were that caller's.
pub(crate) fn applies_to(scope: &DocumentScope, input: &Input, caller: &Caller) -> bool {
    match scope {
        DocumentScope::Tool(tool) => {
            tool.eq_ignore_ascii_case(&input.facts.name)
                || proctor_facts::tool::canonical_name(tool) == input.facts.tool
        }
        _ => covers(scope, caller),
    }
}

/// Whether a document applies to everything that this caller does; one for a tool does not.
fn covers(scope: &DocumentScope, caller: &Caller) -> bool {
    match scope {
        DocumentScope::Global => true,
        DocumentScope::Org(org) => *org == caller.org,
        DocumentScope::Team(team) => *team == caller.team,
        DocumentScope::Agent(agent) => names_of(&caller.principal).iter().any(|name| is_named(agent, name)),
        DocumentScope::Tool(_) => false,
    }
}

/// Whether a document means this name: as it is, by the UUID that is made of it, or by what stood for it in records of earlier versions. What
/// stands for it now depends on a key, so a document names what the records show.
fn is_named(agent: &str, name: &str) -> bool {
    agent == name
        || agent.eq_ignore_ascii_case(&assembly_agent_uuid(name))
        || (name.starts_with("id-") && crate::scan::unkeyed(agent) == name)
}

/// Names by which a document may mean a principal: its whole name; for an agent also the identifier that it registered with, which for one without a
/// key is the last part.
fn names_of(principal: &str) -> Vec<&str> {
    let mut names = vec![principal];
    if let Some(agent) = principal.strip_prefix("agent:") {
        names.push(agent);
        names.extend(agent.rsplit_once('/').map(|(_, last)| last));
    }
    names
}

/// The UUID that Agent Assembly makes of an agent id: the first sixteen bytes of its SHA-256.
fn assembly_agent_uuid(agent: &str) -> String {
    let digest = Digest::of(agent.as_bytes()).to_string();
    let mut uuid = String::with_capacity(36);
    for (index, digit) in digest.chars().take(32).enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            uuid.push('-');
        }
        uuid.push(digit);
    }
    uuid
}
