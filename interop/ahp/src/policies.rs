//! The policies that our server is judged with.

/// Has a rule for every kind of decision, and open-handed advice.
pub const OPEN: &str = r#"
version: "1"
default: deny
budget: { calls: { daily: 100000 } }
rules:
  - id: reading-is-fine
    when: action.tool == "file_read"
    then: allow
  - id: prompts-are-fine
    when: action.kind == "llm_call"
    then: allow
  - id: no-secret-plans
    when: action.kind == "llm_call" && action.text.contains("secret plan")
    then: deny
    reason: Plans stay secret.
  - id: nothing-is-wiped
    when: action.name == "wipe"
    then: deny
    reason: Nothing is wiped.
  - id: deploying-is-fine
    when: action.name == "deploy"
    then: allow
  - id: deploys-are-dry
    when: action.name == "deploy"
    then: modify
    set: { /args/dry_run: true }
  - id: reindexing-later
    when: action.name == "reindex"
    then: defer
    retry_after: 90s
    reason: The window is closed.
  - id: publishing-is-asked
    when: action.name == "publish"
    then: ask
    reason: Publishing needs a person.
    approvers: [ann]
    expires: 10m
  - id: what-is-traced-is-fine
    when: action.name == "traced" && action.metadata.trace == "9f2" && action.depth == 3
    then: allow
  - id: going-on-is-fine
    when: action.name == "confirmation" && action.text.contains("go on")
    then: allow
  - id: spending-is-asked
    when: action.name == "confirmation" && action.text.contains("spend")
    then: ask
    reason: Spending needs a person.
advice:
  intents:
    - { intent: locate, regex: "where is the (?P<target>[a-z ]+)", confidence: 0.75, target_type: function, domain: coding }
  planning:
    strategies: [step_by_step, "custom:beam"]
    deny: [production]
    template: { steps: [] }
  reasoning: { types: [re_act], hints: [check the lock order] }
  rate_limit: { max_wait: 5s }
"#;

/// Allows one call a day, and advises nothing.
pub const CLOSED: &str = r#"
version: "1"
default: allow
budget: { calls: { daily: 1 } }
advice:
  idle: { allow: false, reason: backup running, retry_after: 90s }
  planning: { allow: false, reason: no plans }
  reasoning: { allow: false, reason: no thoughts }
  context: { allow: false, reason: no context }
  memory: { allow: false, reason: no memory }
"#;

/// Allows reading: what the bench runs with.
pub const READING: &str = r#"
version: "1"
default: deny
rules:
  - id: reading-is-fine
    when: action.tool == "file_read"
    then: allow
"#;
