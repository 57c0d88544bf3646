//! What the compiler expects of every program: copying, filling and comparing bytes.
#![expect(unsafe_code, reason = "the compiler's own promises about pointers hold here")]

use core::arch::asm;

/// # Safety
///
/// As in C.
// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
// SAFETY: as in C, the caller answers for the pointers.
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { forward(to, from, count) };
    to
}

/// # Safety
///
/// As in C.
// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
// SAFETY: as in C, the caller answers for the pointers.
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller's promise; from the end where the beginning would overwrite what is still to be read.
    unsafe {
        if to.addr().wrapping_sub(from.addr()) >= count {
            forward(to, from, count);
        } else {
            for place in (0..count).rev() {
                *to.add(place) = *from.add(place);
            }
        }
    }
    to
}

/// # Safety
///
/// As in C.
// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
// SAFETY: as in C, the caller answers for the pointers.
unsafe extern "C" fn memset(to: *mut u8, value: i32, count: usize) -> *mut u8 {
    let byte = value.to_le_bytes()[0];
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") byte, options(nostack, preserves_flags));
        #[cfg(not(target_arch = "x86_64"))]
        for place in 0..count {
            *to.add(place) = byte;
        }
    }
    to
}

/// # Safety
///
/// As in C.
// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
// SAFETY: as in C, the caller answers for the pointers.
unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
    for place in 0..count {
        // SAFETY: the caller's promise.
        let (one, other) = unsafe { (*one.add(place), *other.add(place)) };
        if one != other {
            return i32::from(one) - i32::from(other);
        }
    }
    0
}

/// # Safety
///
/// As in C.
// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
// SAFETY: as in C, the caller answers for the pointers.
unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { memcmp(one, other, count) }
}

/// # Safety
///
/// As in C.
// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
// SAFETY: as in C, the caller answers for the pointers.
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: the caller's promise: somewhere there is a zero.
    while unsafe { *text.add(length) } != 0 {
        length += 1;
    }
    length
}

/// # Safety
///
/// As `memcpy`; where the two overlap, `to` lies before `from`.
// SAFETY: the caller answers for the pointers.
unsafe fn forward(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack, preserves_flags));
        #[cfg(not(target_arch = "x86_64"))]
        for place in 0..count {
            *to.add(place) = *from.add(place);
        }
    }
}
