//! Taking little memory, and giving it back before a long rest.
#![expect(unsafe_code, reason = "what a mapping of a process may lose is not the compiler's to know")]

use rustix::mm::{Advice, madvise};

/// Gives back what this process needed once: pieces that its allocator keeps, and the code and tables that were read when it
/// started. What is needed again comes back by itself, from the page cache.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: this is how the C library declares it; it takes any number, and touches only what the allocator has free.
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        malloc_trim(0);
    }
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    for (start, length) in as_on_disk(&maps) {
        // SAFETY: nothing of the mapping was ever written, and nothing can be: a page that is dropped is read again from its file.
        let _ = unsafe { madvise(std::ptr::without_provenance_mut(start), length, Advice::LinuxDontNeed) };
    }
}

/// Has all threads of this process take their memory from one place. By itself the allocator gives each a place of its own, and
/// what one has freed in its place another cannot use. For a process whose threads take turns, and before they begin.
pub fn share_memory() {
    #[cfg(target_env = "gnu")]
    {
        /// `M_ARENA_MAX`: how many places there may be.
        const PLACES: std::ffi::c_int = -8;
        // SAFETY: this is how the C library declares it; it refuses what it does not know, and says so.
        unsafe extern "C" {
            safe fn mallopt(what: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
        }
        mallopt(PLACES, 1);
    }
}

/// A mapping of this process.
struct Mapping {
    start: usize,
    length: usize,
    /// Whether it is one of a file, and can only be read.
    is_read: bool,
}

/// The mappings of files that cannot be written to and hold nothing but what is in the file.
fn as_on_disk(maps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut mapping = None;
    for line in maps.lines() {
        if let Some(head) = head(line) {
            mapping = Some(head);
        } else if line.strip_prefix("Anonymous:").is_some_and(|rest| rest.trim() == "0 kB") {
            let mapping = mapping.take().filter(|mapping| mapping.is_read);
            found.extend(mapping.map(|mapping| (mapping.start, mapping.length)));
        }
    }
    found
}

/// The mapping that a line begins, if it begins one.
fn head(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    let (rights, path) = (words.next()?, words.nth(3).unwrap_or_default());
    let is_read = matches!(rights, "r-xp" | "r--p") && path.starts_with('/');
    Some(Mapping { start, length: end.checked_sub(start)?, is_read })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_as_on_disk_is_meant() {
        let check = |rights: &str, rest: &str, own: &str, expected: &[(usize, usize)]| {
            let text = format!(
                "1000-3000 {rights} 00000000 {rest}\nSize: 8 kB\nAnonymous:             {own} kB\nVmFlags: rd\n"
            );
            assert_eq!(as_on_disk(&text), expected, "{text}");
        };
        let program = "fe:00 42    /usr/bin/kiwi";
        check("r-xp", program, "0", &[(0x1000, 0x2000)]);
        check("r--p", program, "0", &[(0x1000, 0x2000)]);
        // Relocated when it was loaded, and only then closed.
        check("r--p", program, "4", &[]);
        check("rw-p", program, "0", &[]);
        check("rwxp", program, "0", &[]);
        check("r--s", program, "0", &[]);
        check("r--p", "00:00 0", "0", &[]);
        check("r-xp", "00:00 0    [vdso]", "0", &[]);
        assert_eq!(as_on_disk("nonsense\nAnonymous: 0 kB\n"), []);
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
