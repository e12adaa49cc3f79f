//! x

pub mod scan;
pub mod glob;
pub mod calendar;
pub mod input;
pub mod question;
pub mod readset;
pub mod state;
pub mod condition;
pub mod document;
pub mod duration;
pub mod expression;
pub mod json_path;
