//! Giving memory back before a long rest.
#![expect(unsafe_code, reason = "what a mapping of a process may lose is not the compiler's to know")]

use rustix::mm::{Advice, madvise};

/// Gives back what this process needed once: pieces that its allocator keeps, and the code that ran when it started. What is
/// needed again comes back by itself, from the page cache.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: this is how the C library declares it; it takes any number, and touches only what the allocator has free.
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        malloc_trim(0);
    }
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    let Ok(program) = std::env::current_exe() else { return };
    for (start, length) in maps.lines().filter_map(|line| code_of(line, &program)) {
        // SAFETY: the mapping is code of this program, never written: a page that is dropped is read again from its file.
        let _ = unsafe { madvise(std::ptr::without_provenance_mut(start), length, Advice::LinuxDontNeed) };
    }
}

/// Where a line of the list of mappings has code of this program.
fn code_of(line: &str, program: &std::path::Path) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights, path) = (words.next()?, words.next()?, words.nth(3)?);
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    (rights == "r-xp" && std::path::Path::new(path) == program).then_some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_itself_is_meant() {
        let program = std::path::Path::new("/usr/bin/kiwi");
        let check = |line: &str, expected| assert_eq!(code_of(line, program), expected, "{line}");
        check("1000-3000 r-xp 00000000 fe:00 42    /usr/bin/kiwi", Some((0x1000, 0x2000)));
        check("1000-3000 r--p 00000000 fe:00 42    /usr/bin/kiwi", None);
        check("1000-3000 rwxp 00000000 fe:00 42    /usr/bin/kiwi", None);
        check("1000-3000 r-xp 00000000 fe:00 42    /usr/lib/libc.so.6", None);
        check("1000-3000 r-xp 00000000 00:00 0", None);
        check("nonsense", None);
    }

    #[test]
    fn the_program_goes_on_as_before() {
        let kept: Vec<Vec<u8>> = (0..200_u8).map(|byte| vec![byte; 40_000]).collect();
        for _ in 0..3 {
            give_memory_back();
        }
        assert!(kept.iter().zip(0..200_u8).all(|(kept, byte)| kept.iter().all(|it| *it == byte)));
    }
}
