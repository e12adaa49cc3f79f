//! Sandbox battery: each protection attacked from inside, endings, reports, and what is left afterwards.

mod battery;
mod endings;
mod helper;
mod interpreters;
mod leaks;
mod ordinary;
mod reports;
mod support;
