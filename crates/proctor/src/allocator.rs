//! The allocator, and giving back what start-up needed for a moment.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns freed memory to the operating system. Compiling a policy needs much for a moment; a process that then waits for the
/// next action would keep it for ever.
#[expect(unsafe_code, reason = "a call into the allocator; it takes no pointer and has no precondition")]
pub fn give_back() {
    // SAFETY: `mi_collect` may be called at any time from any thread.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
