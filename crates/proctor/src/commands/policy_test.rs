//! `proctor policy test`
use super::Context;
use crate::failure::Outcome;
pub(super) fn run(_context: &Context, _file: &std::path::Path) -> Outcome { Ok(0) }
