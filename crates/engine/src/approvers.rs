//! Approver credentials: the keys that may decide approvals, and the statement that they sign.

use std::path::Path;

use proctor_core::digest::Digest;
use proctor_core::id::ApprovalId;
use proctor_core::json::Json;
use proctor_ledger::keys::{SecretKey, Trust};
use proctor_ledger::note::{Note, NoteError};

/// Error of checking a signed statement or the file of approvers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The file of approvers cannot be read.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// Description of the mistake.
        reason: String,
    },
    /// The text is not a signed note, or cannot be signed.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The state directory names no approver.
    #[error("no approver is registered here: `proctor init` makes a credential")]
    NobodyRegistered,
    /// No registered key made the signature.
    #[error("not signed by a registered approver")]
    UnknownSigner,
    /// The signed text is not an approval statement.
    #[error("not an approval statement")]
    NotAStatement,
    /// The signed text does not accept a policy.
    #[error("not a statement that accepts a policy")]
    NotAnAcceptance,
    /// The statement is about another ledger.
    #[error("the statement is for ledger `{stated}`, this is `{here}`")]
    OtherLedger {
        /// The ledger that the statement names.
        stated: String,
        /// The ledger of this state directory.
        here: String,
    },
}

/// Decision of an approver on an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApproverDecision {
    /// The action may run once.
    Allow,
    /// The action must not run.
    Deny,
}

impl ApproverDecision {
    /// The word in the signed statement.
    pub const fn word(self) -> &'static str {
        match self {
            ApproverDecision::Allow => "allow",
            ApproverDecision::Deny => "deny",
        }
    }
}

/// The statement that an approver signs. It names the ledger, so that it is good for no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The ledger's name.
    pub ledger: String,
    /// The approval.
    pub approval: ApprovalId,
    /// Decision on the approval; `verdict` in the signed text.
    pub decision: ApproverDecision,
    /// Reason.
    pub reason: String,
}

/// The longest reason, in bytes.
pub const MAX_REASON: usize = 1024;

impl Statement {
    /// The text that is signed.
    pub fn text(&self) -> String {
        let reason = Json::from(self.reason.as_str());
        format!(
            "proctor-approval/1\nledger {}\napproval {}\nverdict {}\nreason {reason}\n",
            self.ledger,
            self.approval,
            self.decision.word()
        )
    }

    /// Reads the text; only the one spelling is accepted.
    pub fn parse(text: &str) -> Option<Statement> {
        let mut lines = text.lines();
        let mut field = |name: &str| lines.next()?.strip_prefix(name).map(str::to_owned);
        field("proctor-approval/1")?;
        let ledger = field("ledger ")?;
        let approval = field("approval ")?.parse().ok()?;
        let decision = match field("verdict ")?.as_str() {
            "allow" => ApproverDecision::Allow,
            "deny" => ApproverDecision::Deny,
            _ => return None,
        };
        let reason = Json::parse(field("reason ")?.as_bytes()).ok()?.as_str()?.to_owned();
        let statement = Statement { ledger, approval, decision, reason };
        (statement.text() == text && statement.reason.len() <= MAX_REASON).then_some(statement)
    }

    /// The statement as a signed note.
    pub fn sign(&self, key: &SecretKey) -> Result<String, CredentialError> {
        let mut note = Note::new(self.text())?;
        note.sign(key)?;
        Ok(note.to_string())
    }
}

/// The statement by which an approver accepts a weaker policy. It names the record that the policy in force was loaded by, so that it is good for
/// one change only: nobody can use it again after the policy was made stricter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyStatement {
    /// The ledger's name.
    pub ledger: String,
    /// Sequence of the record of the policy that is replaced.
    pub after: u64,
    /// Digest of the policy that is replaced.
    pub from: Digest,
    /// Digest of the policy that is accepted.
    pub to: Digest,
}

impl PolicyStatement {
    /// The text that is signed.
    pub fn text(&self) -> String {
        let PolicyStatement { ledger, after, from, to } = self;
        format!("proctor-policy/1\nledger {ledger}\nreplaces {after} {from}\naccepts {to}\n")
    }

    /// Reads the text; only the one spelling is accepted.
    pub fn parse(text: &str) -> Option<PolicyStatement> {
        let mut lines = text.lines();
        let mut field = |name: &str| lines.next()?.strip_prefix(name).map(str::to_owned);
        field("proctor-policy/1")?;
        let ledger = field("ledger ")?;
        let replaces = field("replaces ")?;
        let (after, from) = replaces.split_once(' ')?;
        let (after, from) = (after.parse().ok()?, from.parse().ok()?);
        let statement = PolicyStatement { ledger, after, from, to: field("accepts ")?.parse().ok()? };
        (statement.text() == text).then_some(statement)
    }

    /// The statement as a signed note.
    pub fn sign(&self, key: &SecretKey) -> Result<String, CredentialError> {
        let mut note = Note::new(self.text())?;
        note.sign(key)?;
        Ok(note.to_string())
    }
}

/// A person's decision, checked: who signed what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalOrder {
    /// The signed statement.
    pub statement: Statement,
    /// The name of the approver's key.
    pub approver: String,
    /// The signed note, as it came.
    pub note: String,
}

/// The keys of those who may approve, as `init` wrote them into the state directory.
#[derive(Debug, Clone)]
pub struct ApproverKeys {
    ledger: String,
    trust: Trust,
}

impl ApproverKeys {
    /// Reads the file of approvers. A file that is not there names nobody.
    pub fn read(file: &Path, ledger: &str) -> Result<ApproverKeys, CredentialError> {
        let unusable = |reason: String| CredentialError::File { file: file.display().to_string(), reason };
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(unusable(error.to_string())),
        };
        let trust = text.parse::<Trust>().map_err(|error| unusable(error.to_string()))?;
        Ok(ApproverKeys { ledger: ledger.to_owned(), trust })
    }

    /// Whether the file names an approver.
    pub fn names_somebody(&self) -> bool {
        !self.trust.approvers.is_empty()
    }

    /// Checks a signed statement: known approver, good signature, this ledger.
    pub fn check(&self, signed: &str) -> Result<ApprovalOrder, CredentialError> {
        let (note, approver) = self.verified(signed)?;
        let statement = Statement::parse(note.text()).ok_or(CredentialError::NotAStatement)?;
        self.check_ledger(&statement.ledger)?;
        Ok(ApprovalOrder { statement, approver, note: signed.to_owned() })
    }

    /// Checks a signed statement that accepts a policy. Returns it with the approver's name.
    pub fn check_policy(&self, signed: &str) -> Result<(PolicyStatement, String), CredentialError> {
        let (note, approver) = self.verified(signed)?;
        let statement = PolicyStatement::parse(note.text()).ok_or(CredentialError::NotAnAcceptance)?;
        self.check_ledger(&statement.ledger)?;
        Ok((statement, approver))
    }

    /// The note, and the name of the approver that signed it.
    fn verified(&self, signed: &str) -> Result<(Note, String), CredentialError> {
        let note = Note::parse(signed.as_bytes())?;
        if self.trust.approvers.is_empty() {
            return Err(CredentialError::NobodyRegistered);
        }
        let signer = self.trust.approvers.iter().find(|key| note.verify(key).is_ok());
        let Some(signer) = signer else { return Err(CredentialError::UnknownSigner) };
        let name = signer.name().to_owned();
        Ok((note, name))
    }

    fn check_ledger(&self, stated: &str) -> Result<(), CredentialError> {
        if stated == self.ledger {
            return Ok(());
        }
        Err(CredentialError::OtherLedger { stated: stated.to_owned(), here: self.ledger.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_core::random::SeededRandomness;
    use proctor_core::time::Timestamp;
    use proctor_ledger::keys::Algorithm;

    fn key(name: &str, seed: u8) -> SecretKey {
        SecretKey::from_seed(name, Algorithm::Ed25519, &[seed; 32]).unwrap()
    }

    #[test]
    fn only_a_registered_approver_of_this_ledger_counts() {
        let statement = Statement {
            ledger: "here".into(),
            approval: ApprovalId::new(Timestamp::from_micros(1), &SeededRandomness::new(1)),
            decision: ApproverDecision::Allow,
            reason: "fine\n\"really\"".into(),
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("approvers");
        std::fs::write(&file, format!("approver {}\n", key("ann", 1).verifier_key())).unwrap();
        let keys = ApproverKeys::read(&file, "here").unwrap();
        let signed = statement.sign(&key("ann", 1)).unwrap();
        let order = keys.check(&signed).unwrap();
        assert_eq!((order.approver.as_str(), &order.statement), ("ann", &statement));
        assert!(
            keys.check(&statement.sign(&key("ann", 2)).unwrap()).is_err(),
            "another key of the same name"
        );
        assert!(keys.check(&signed.replace("allow", "deny")).is_err());
        let other = Statement { ledger: "there".into(), ..statement };
        assert!(
            keys.check(&other.sign(&key("ann", 1)).unwrap()).unwrap_err().to_string().contains("`there`")
        );
        assert!(
            ApproverKeys::read(&folder.path().join("none"), "here")
                .unwrap()
                .check(&signed)
                .unwrap_err()
                .to_string()
                .contains("no approver")
        );
    }
}
