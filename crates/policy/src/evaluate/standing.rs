//! Whether the agent may act at all now, and whether it is only observed.

use proctor_core::decision::Decision;

use super::Gathered;
use crate::document::Document;
use crate::input::Input;
use crate::question::{Memory, Standing};

/// Asks the registry. A stop is a deny that nothing outweighs.
pub(super) fn judge(
    documents: &[&Document],
    input: &Input,
    memory: &dyn Memory,
    gathered: &mut Gathered<'_>,
) -> Option<Box<Standing>> {
    let _ = (documents, input, memory, gathered);
    None
}

/// What an agent that is only observed gets, if a document lets it be.
pub(super) fn observe(
    decision: &mut Decision,
    documents: &[&Document],
    input: &Input,
    standing: Option<&Standing>,
) {
    let _ = (decision, documents, input, standing);
}
