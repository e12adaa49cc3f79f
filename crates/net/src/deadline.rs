//! A single timer for all deadlines of a connection.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The expiry of a timer without a deadline.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A timer without a deadline.
pub(crate) fn unset() -> Sleep {
    sleep_until(Instant::now() + FAR)
}

/// Polls for the deadline `due`: true once it has passed, else the task is woken no later than `due`.
///
/// The timer is reset only when it would fire too late, or fired too early: most deadlines are superseded by the next message, and a
/// reset for each would cost more than the message.
pub(crate) fn has_passed(mut timer: Pin<&mut Sleep>, due: Instant, cx: &mut Context<'_>) -> bool {
    loop {
        if timer.deadline() > due {
            timer.as_mut().reset(due);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        if Instant::now() >= due {
            timer.as_mut().reset(Instant::now() + FAR);
            return true;
        }
        timer.as_mut().reset(due);
    }
}
