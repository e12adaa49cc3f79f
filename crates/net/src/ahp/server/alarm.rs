//! One timer for all the deadlines of a connection.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// When an alarm rings that nobody set.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// An alarm that does not ring.
pub(crate) fn unset() -> Sleep {
    sleep_until(Instant::now() + FAR)
}

/// Whether `due` has come. The alarm is moved only when it would ring too late, or rang too early: most deadlines are overtaken by
/// the next message, and moving it for each would cost more than the message.
pub(crate) fn rings(mut alarm: Pin<&mut Sleep>, due: Instant, cx: &mut Context<'_>) -> bool {
    loop {
        if alarm.deadline() > due {
            alarm.as_mut().reset(due);
        }
        if alarm.as_mut().poll(cx).is_pending() {
            return false;
        }
        if Instant::now() >= due {
            alarm.as_mut().reset(Instant::now() + FAR);
            return true;
        }
        alarm.as_mut().reset(due);
    }
}
