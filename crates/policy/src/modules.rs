//! stub
pub mod cedar; pub mod rego;
use proctor_core::decision::Effect;
pub struct Opinion { pub effect: Effect, pub rule: String, pub reason: String }
pub struct ModuleProblem { pub line: usize, pub column: usize, pub message: String }
