//! The Agent Test Protocol: the document's examples, its schemas as an oracle, and laws of reading and writing.

mod any_input;
mod document;
mod examples;
mod mutation;
mod oracle;
mod schemas;
