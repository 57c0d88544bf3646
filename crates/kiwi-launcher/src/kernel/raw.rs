//! System calls by their numbers.
#![expect(unsafe_code, reason = "this is where the kernel is entered")]

use core::arch::asm;
use rustix::io::{Errno, Result};

/// Asks the kernel.
///
/// # Safety
///
/// Whatever this call reads or writes through its arguments must be there for it.
#[cfg(target_arch = "x86_64")]
// SAFETY: the caller answers for what is behind the arguments.
pub unsafe fn call(number: usize, [first, second, third, fourth, fifth, sixth]: [usize; 6]) -> Result<usize> {
    let answer: isize;
    // SAFETY: the kernel keeps every register but these three; what is behind the arguments is the caller's promise.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth,
            in("r8") fifth, in("r9") sixth, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    understood(answer)
}

/// Asks the kernel.
///
/// # Safety
///
/// Whatever this call reads or writes through its arguments must be there for it.
#[cfg(target_arch = "aarch64")]
// SAFETY: the caller answers for what is behind the arguments.
pub unsafe fn call(number: usize, [first, second, third, fourth, fifth, sixth]: [usize; 6]) -> Result<usize> {
    let answer: isize;
    // SAFETY: the kernel keeps every register but the first; what is behind the arguments is the caller's promise.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") first => answer, in("x1") second, in("x2") third, in("x3") fourth, in("x4") fifth,
            in("x5") sixth, options(nostack));
    }
    understood(answer)
}

/// Makes a process that shares this one's memory, with these flags beside that. It begins with `life(given)` on a stack of
/// its own, which ends at `stack`.
///
/// # Safety
///
/// `stack` is the upper end of writable memory that nobody else uses, a multiple of sixteen; `given` is what `life` takes.
#[cfg(target_arch = "x86_64")]
// SAFETY: the caller answers for the stack, and for what `life` is given.
pub unsafe fn beside(
    flags: usize,
    life: extern "C" fn(usize) -> !,
    given: usize,
    stack: usize,
) -> Result<usize> {
    let answer: isize;
    // SAFETY: the child is on a stack of its own and never comes back from `life`; this process goes on behind it with all registers as they were.
    unsafe {
        asm!("syscall", "test rax, rax", "jnz 2f", "xor ebp, ebp", "mov rdi, r12", "call r13", "ud2", "2:",
            inlateout("rax") number::CLONE => answer, in("rdi") SHARED | flags, in("rsi") stack, in("rdx") 0, in("r10") 0,
            in("r8") 0, in("r12") given, in("r13") life, lateout("rcx") _, lateout("r11") _);
    }
    understood(answer)
}

/// The same on the other architecture.
///
/// # Safety
///
/// As there.
#[cfg(target_arch = "aarch64")]
// SAFETY: the caller answers for the stack, and for what `life` is given.
pub unsafe fn beside(
    flags: usize,
    life: extern "C" fn(usize) -> !,
    given: usize,
    stack: usize,
) -> Result<usize> {
    let answer: isize;
    // SAFETY: the child is on a stack of its own and never comes back from `life`; this process goes on behind it with all registers as they were.
    unsafe {
        asm!("svc 0", "cbnz x0, 2f", "mov x29, xzr", "mov x0, x20", "blr x21", "brk 1", "2:",
            in("x8") number::CLONE, inlateout("x0") SHARED | flags => answer, in("x1") stack, in("x2") 0, in("x3") 0,
            in("x4") 0, in("x20") given, in("x21") life);
    }
    understood(answer)
}

/// Memory is shared, and the parent learns of the end as of any child's.
const SHARED: usize = 0x100 | 0x11;
/// The parent waits until the new process has started a program or ended.
pub const WAITED_FOR: usize = 0x4000;
/// Both have the same descriptors.
pub const SAME_DESCRIPTORS: usize = 0x400;

/// A copy of this process: zero in the copy, its number here.
///
/// # Safety
///
/// The process has one thread, and the copy never touches what is only its parent's to clean up.
// SAFETY: the caller answers for there being one thread.
pub unsafe fn copy() -> Result<usize> {
    const ENDS_LIKE_A_CHILD: usize = 17;
    // SAFETY: without a stack of its own the copy goes on where this process is, with all memory copied.
    unsafe { call(number::CLONE, [ENDS_LIKE_A_CHILD, 0, 0, 0, 0, 0]) }
}

fn understood(answer: isize) -> Result<usize> {
    usize::try_from(answer).map_err(|_| {
        let errno = i32::try_from(answer.wrapping_neg()).unwrap_or(0);
        Errno::from_raw_os_error(errno)
    })
}

/// A descriptor as the kernel takes it.
pub const fn descriptor(number: i32) -> usize {
    number.cast_unsigned() as usize
}

#[cfg(target_arch = "x86_64")]
pub mod number {
    pub const RT_SIGACTION: usize = 13;
    pub const RT_SIGPROCMASK: usize = 14;
    pub const NANOSLEEP: usize = 35;
    pub const CLONE: usize = 56;
    pub const EXECVE: usize = 59;
    pub const KILL: usize = 62;
    pub const PRCTL: usize = 157;
    pub const CLOCK_GETTIME: usize = 228;
    pub const EXIT_GROUP: usize = 231;
    pub const UNSHARE: usize = 272;
    pub const SIGNALFD4: usize = 289;
    pub const GETCPU: usize = 309;
    pub const CLOSE_RANGE: usize = 436;
    pub const MOUNT_SETATTR: usize = 442;
    pub const LANDLOCK_CREATE_RULESET: usize = 444;
    pub const LANDLOCK_ADD_RULE: usize = 445;
    pub const LANDLOCK_RESTRICT_SELF: usize = 446;
}

#[cfg(target_arch = "aarch64")]
pub mod number {
    pub const SIGNALFD4: usize = 74;
    pub const EXIT_GROUP: usize = 94;
    pub const UNSHARE: usize = 97;
    pub const NANOSLEEP: usize = 101;
    pub const CLOCK_GETTIME: usize = 113;
    pub const KILL: usize = 129;
    pub const RT_SIGACTION: usize = 134;
    pub const RT_SIGPROCMASK: usize = 135;
    pub const PRCTL: usize = 167;
    pub const GETCPU: usize = 168;
    pub const CLONE: usize = 220;
    pub const EXECVE: usize = 221;
    pub const CLOSE_RANGE: usize = 436;
    pub const MOUNT_SETATTR: usize = 442;
    pub const LANDLOCK_CREATE_RULESET: usize = 444;
    pub const LANDLOCK_ADD_RULE: usize = 445;
    pub const LANDLOCK_RESTRICT_SELF: usize = 446;
}
