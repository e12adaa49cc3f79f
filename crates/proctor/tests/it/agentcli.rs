//! The agentcli protocol from the outside: the program of that name, as its clients start it, and `proctor manifest`.

mod approvals;
mod command_line;
mod defects;
mod hostile;
mod killed;
pub mod place;
mod rpc;
mod runs;
pub mod scheduler;
mod secrets;
