//! stub
use super::*; use crate::input::Input; use crate::question::Memory;
pub struct RegoModule;
impl RegoModule { pub fn compile(_f:&str,_t:&str)->Result<RegoModule,Vec<ModuleProblem>>{Ok(RegoModule)} pub fn evaluate(&self,_i:&Input,_m:&dyn Memory)->Vec<Opinion>{Vec::new()} }
