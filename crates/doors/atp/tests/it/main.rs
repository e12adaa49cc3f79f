//! The endpoint with a real engine, called by a plain HTTP client.

mod decisions;
mod fixture;
mod forward;
mod lifetime;
mod refusals;
mod relay;
mod routes;
