//! Where the kernel begins this program.
#![expect(unsafe_code, reason = "there is nothing below that could do it")]

extern crate alloc;

use alloc::vec::Vec;
use core::arch::global_asm;
use core::ffi::{CStr, c_char};
use kiwi_launcher::kernel::processes::exit;
use kiwi_launcher::{ARGUMENT, NoEngines};

#[cfg(target_arch = "x86_64")]
global_asm!(".globl _start", "_start:", "xor ebp, ebp", "mov rdi, rsp", "and rsp, -16", "call {begin}", "ud2", begin = sym begin);
#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start:", "mov x29, xzr", "mov x30, xzr", "mov x0, sp", "bl {begin}", "brk 1", begin = sym begin);

/// `given` is how many words the program was started with, then where each of them is.
extern "C" fn begin(given: *const usize) -> ! {
    // SAFETY: so the kernel lays it out, for as long as the program lives.
    let words: Vec<&[u8]> = unsafe {
        let count = *given;
        let first = given.add(1).cast::<*const c_char>();
        (0..count).map(|place| CStr::from_ptr(*first.add(place)).to_bytes()).collect()
    };
    let done = match words.get(1..) {
        Some([argument, rest @ ..]) if *argument == ARGUMENT.as_bytes() => {
            kiwi_launcher::main(rest, &NoEngines)
        }
        _ => Err(rustix::io::Errno::INVAL),
    };
    exit(u8::from(done.is_err()))
}
