//! Behaviour out of the ordinary: loops, spikes, leaks, unknown hosts.

use proctor_core::record::Amount;

use super::Gathered;
use crate::document::Document;
use crate::input::Input;
use crate::question::Memory;

/// Judges the action; gives what its record has to carry so that the next one can be judged.
pub(super) fn judge(
    documents: &[&Document],
    input: &Input,
    memory: &dyn Memory,
    gathered: &mut Gathered<'_>,
) -> Vec<Amount> {
    let _ = (documents, input, memory, gathered);
    Vec::new()
}
