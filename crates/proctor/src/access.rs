//! Opening a state directory with the doors that relays may ask for.

use std::sync::Arc;

use proctor_door_ahp::AhpDoor;
use proctor_door_gate::{RelayedGate, RelayedRuns};
use proctor_engine::Engine;
use proctor_engine::access::{self, AccessError, Opening, Relay};
use proctor_engine::owner::RelayedDoor;
use proctor_engine::state_dir::StateDir;
use proctor_flow::run::RelayedJobs;

use crate::config::Config;

pub use proctor_engine::access::COMMAND;

/// The mode of a relay that carries lines of the gate.
pub const GATE: &str = "gate";
/// The mode of a relay that carries messages of the Agent Harness Protocol.
pub const AHP: &str = "ahp";

/// Access of this process to the ledger of a state directory.
pub enum Access {
    /// The owner is this process.
    Owner(Owner),
    /// The owner is another process.
    Relay(Relay),
}

/// The engine, and the door that knows which decisions are open; one each in a process.
#[derive(Clone)]
pub struct Owner {
    /// Decides and records.
    pub engine: Arc<Engine>,
    /// The door of the Agent Harness Protocol.
    pub ahp: AhpDoor,
}

impl Access {
    /// Becomes the owner, or connects to it.
    pub fn open(config: &Config, mode: &str) -> Result<Access, AccessError> {
        Access::open_within(config, &Opening { mode, ..Opening::default() })
    }

    /// [`Access::open`] with a time limit, for a process that may have denies to tell the owner of.
    pub fn open_within(config: &Config, opening: &Opening<'_>) -> Result<Access, AccessError> {
        if let Some(origin) = &config.origin {
            StateDir::new(&config.engine.state).check_origin(origin)?;
        }
        let mut ahp = None;
        let opening = Opening { loads_weaker: config.loads_weaker, ..opening.clone() };
        let opened = access::Access::open_within(&config.engine, &opening, |engine| {
            let door = AhpDoor::new(Arc::clone(engine), config.ahp.clone());
            ahp = Some(door.clone());
            let (gate, runs) = (RelayedGate(Arc::clone(engine)), RelayedRuns(Arc::clone(engine)));
            let doors: Vec<Box<dyn RelayedDoor>> = vec![
                Box::new(gate),
                Box::new(runs),
                Box::new(RelayedJobs(Arc::clone(engine))),
                Box::new(door),
            ];
            doors
        })?;
        Ok(match opened {
            access::Access::Owner(engine) => {
                crate::allocator::keep_for_work();
                let ahp = ahp.unwrap_or_else(|| AhpDoor::new(Arc::clone(&engine), config.ahp.clone()));
                Access::Owner(Owner { engine, ahp })
            }
            access::Access::Relay(relay) => Access::Relay(relay),
        })
    }

    /// Converts to the access of the engine alone.
    pub fn into_engine(self) -> access::Access {
        match self {
            Access::Owner(owner) => access::Access::Owner(owner.engine),
            Access::Relay(relay) => access::Access::Relay(relay),
        }
    }
}
