//! The launcher as a program of its own, without a C library: see the crate's own page.
#![no_std]
#![no_main]
#![no_builtins]
#![expect(unsafe_code, reason = "the compiler asks for functions by their names")]

mod bytes;
mod entry;
mod room;

use kiwi_launcher::kernel::processes::exit;

/// The code of a program that gave up, as the standard library has it.
const GAVE_UP: u8 = 101;

/// What goes wrong in a way that nobody foresaw ends the launcher; whoever waits for it sees that.
#[panic_handler]
fn give_up(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(GAVE_UP)
}

/// The compiled core library names this for programs that clear up while they give up. This one never does.
// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() -> ! {
    exit(GAVE_UP)
}

/// Likewise.
// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    exit(GAVE_UP)
}
