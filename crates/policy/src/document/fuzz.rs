//! For random drivers.

use super::read_document;

/// Reads anything as a document. The only promise: it returns, and what it refuses it refuses with a reason.
pub fn fuzz_document(data: &[u8]) {
    if let Err(problems) = read_document("fuzz", data) {
        debug_assert!(!problems.is_empty(), "refused without a reason");
    }
}
