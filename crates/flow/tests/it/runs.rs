//! Runs of tasks with a real engine in a temporary state directory.

mod decisions;
mod declared;
mod evidence;
mod fixture;
mod identity;
mod processes;
mod prompts;
mod relay;
mod sandbox;
mod workflows;
