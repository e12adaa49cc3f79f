//! The allocator, and giving back what was needed for a moment only.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The allocator's option for how long freed memory is kept, in milliseconds; its binding has no name for it.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Time that freed memory is kept while there is work: giving pages back and taking them again costs more than a decision.
const KEPT_MS: i64 = 250;

/// Makes the allocator return freed memory to the operating system at once. Compiling a policy needs much for a moment; a process that then
/// waits for the next action would keep it for ever, because the allocator only checks on an allocation.
pub fn keep_little() {
    set_purge_delay(0);
}

/// Keeps freed memory for a moment, once what was needed to begin has been given back.
pub fn keep_for_work() {
    give_back();
    set_purge_delay(KEPT_MS);
}

#[expect(unsafe_code, reason = "a call into the allocator; it takes no pointer and has no precondition")]
fn set_purge_delay(milliseconds: i64) {
    // SAFETY: options may be set at any time from any thread.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, milliseconds) };
}

/// Returns what this thread has freed.
#[expect(unsafe_code, reason = "a call into the allocator; it takes no pointer and has no precondition")]
pub fn give_back() {
    // SAFETY: `mi_collect` may be called at any time from any thread.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
