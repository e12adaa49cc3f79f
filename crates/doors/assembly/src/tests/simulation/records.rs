//! Expected records at the end of a simulated day.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::ApprovalId;
use proctor_core::record::RecordKind;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_policy::body::{Derivation, policy_from_body, rederive};
use proctor_policy::policy::Policy;
use proctor_policy::state::State;

use super::{Life, Lived};

impl Life {
    /// Every answer has its one record, every decision can be derived again, and the rows are the fold of the records.
    pub(super) async fn finish(mut self) -> Lived {
        if self.random.below(2) == 0 {
            self.restart().await;
            self.compare().await;
        }
        let at = self.at();
        self.gateway.engine().ledger().checkpoint().unwrap();
        let reader = self.gateway.engine().ledger().reader();
        let mut folded = State::new();
        let mut policies: HashMap<Digest, Arc<Policy>> = HashMap::new();
        let (mut decisions, mut refusals) = (Vec::new(), Vec::new());
        let mut observed = 0;
        let mut used: HashMap<ApprovalId, (usize, usize)> = HashMap::new();
        let mut expired: BTreeSet<ApprovalId> = BTreeSet::new();
        for record in reader.records(Filter::default(), Order::Ascending) {
            let (sequence, envelope) = record.map(|record| (record.seq, record.envelope)).unwrap();
            let body = match reader.body(sequence).unwrap() {
                BodyState::Present { bytes, .. } => Some(bytes),
                _ => None,
            };
            match envelope.kind {
                RecordKind::Policy => {
                    let policy = policy_from_body(body.as_deref().unwrap()).unwrap();
                    policies.insert(policy.digest(), Arc::new(policy));
                }
                RecordKind::Decision => {
                    let mut policy = |digest: Digest| policies.get(&digest).cloned();
                    let derived = rederive(&envelope, body.as_deref(), &mut policy, Some(&folded));
                    assert_eq!(derived, Derivation::Same, "{at}: record {sequence}");
                    decisions.push(envelope.id.to_string());
                    let is_let_through = envelope.decision.is_some_and(Effect::lets_through);
                    if let Some(approval) = envelope.approval.filter(|_| is_let_through) {
                        used.entry(approval).or_default().1 += 1;
                    }
                }
                RecordKind::Alarm if envelope.code == "identity" => refusals.push(envelope.id.to_string()),
                RecordKind::Observation => observed += 1,
                RecordKind::Approval if envelope.code == "expired" => {
                    let first = expired.insert(envelope.approval.unwrap());
                    assert!(first, "{at}: it ran out twice");
                }
                RecordKind::Approval => {
                    let granted = used.entry(envelope.approval.unwrap()).or_default();
                    granted.0 += 1;
                    assert_eq!(*granted, (1, 0), "{at}: decided twice, or used before");
                }
                _ => {}
            }
            folded.apply(sequence, &envelope);
        }
        assert_eq!(decisions, self.decisions, "{at}: one record for each answer, in order");
        assert_eq!(refusals, self.refusals, "{at}: one alarm for each stranger, in order");
        let once: BTreeSet<&String> = decisions.iter().chain(&refusals).collect();
        assert_eq!(once.len(), self.lived.checks, "{at}");
        assert_eq!(observed, self.events.len(), "{at}: one observation for each event");
        assert_eq!(used.values().map(|it| it.0).sum::<usize>(), self.lived.decided, "{at}");
        assert_eq!(used.values().map(|it| it.1).sum::<usize>(), self.lived.granted, "{at}");
        assert!(used.values().all(|(decided, used)| used <= decided), "{at}: a grant is used once: {used:?}");
        assert!(used.keys().all(|approval| !expired.contains(approval)), "{at}: decided after it ran out");
        let on_disk = proctor_engine::read_state(&reader).unwrap();
        assert!(on_disk.rows() == folded.rows(), "{at}: the rows are not the fold of the records");
        self.lived.events = self.events.len();
        self.lived
    }
}
