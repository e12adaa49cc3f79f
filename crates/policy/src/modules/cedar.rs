//! stub
use super::*; use crate::input::Input; use crate::question::Memory;
pub struct CedarModule;
impl CedarModule { pub fn compile(_f:&str,_t:&str)->Result<CedarModule,Vec<ModuleProblem>>{Ok(CedarModule)} pub fn evaluate(&self,_i:&Input,_m:&dyn Memory)->Vec<Opinion>{Vec::new()} }
