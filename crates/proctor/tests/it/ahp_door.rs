//! The door of the Agent Harness Protocol from the outside: `proctor harness` on stdin and stdout.

pub mod advice;
pub mod approvals;
pub mod closed;
pub mod decisions;
pub mod holes;
pub mod kinds;
pub mod queries;
pub mod reports;
pub mod runs;
pub mod violations;

/// Policy of most tests here.
const POLICY: &str = r#"
version: "1"
default: deny
budget:
  tokens: { daily: 100000 }
rules:
  - id: no-delete
    when: action.commands.exists(c, c.startsWith("rm "))
    then: deny
    reason: Nothing is deleted here.
  - { id: commands, when: action.tool == "shell", then: allow }
  - { id: uploads, when: action.tool == "upload", then: allow }
  - { id: prompts, when: action.tool == "llm_call", then: allow }
  - { id: short-searches, when: action.tool == "search", then: modify, set: { /args/limit: 10 } }
  - { id: searches, when: action.tool == "search", then: allow }
  - { id: later, when: action.tool == "later", then: defer, retry_after: 2s, reason: Not now. }
  - { id: deploys, when: action.tool == "deploy", then: ask, expires: 1h, reason: Deploying needs a person. }
  - { id: brief, when: action.tool == "brief", then: ask, expires: 50ms }
  - { id: no-spending, when: action.tool == "confirmation" && action.args.confirmation_type == "cost_confirm", then: deny, reason: Nothing is spent. }
  - { id: safety, when: action.tool == "confirmation" && action.args.confirmation_type == "safety_confirm", then: ask, reason: A person looks. }
  - { id: users, when: action.tool == "confirmation" && action.args.confirmation_type == "user_confirm", then: allow }
"#;

/// Text that the scanner takes for a key.
const SECRET: &str = "sk-a1B2c3D4e5F6g7H8i9J0";
