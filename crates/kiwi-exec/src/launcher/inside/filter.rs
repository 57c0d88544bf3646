//! Seccomp: the kernel asks this filter before every system call, and calls that lead towards the host are refused.
//!
//! Refused calls answer "not permitted", so that programs that only try go on. Another architecture's calls end the
//! process, because the numbers would mean something else there. Written out step by step, because the kernel compiles
//! it at every start: a generated filter is four times as long.

use nix::libc;
use seccompiler::{BpfProgram, sock_filter};
use std::io;

use super::calls::{MODES, OPAQUE, REFUSED, REFUSED_WITHOUT_SOCKETS};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const REFUSE: u32 = 0x0005_0000 | libc::EPERM.cast_unsigned();
const NO_SUCH_CALL: u32 = 0x0005_0000 | libc::ENOSYS.cast_unsigned();

/// Calls from here on are the second numbering of x86-64, which the lists do not know.
const SECOND_NUMBERING: u32 = 0x4000_0000;
/// Flags of `clone` that make a namespace, of time included.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | 0x80)
    .cast_unsigned();
/// Typing into a terminal, and setting its selection or keys.
const TERMINAL: [u32; 2] = [0x5412, 0x541c];
/// A program that runs as its owner, left in a declared folder, would work for whoever starts it outside.
const RUNS_AS_OWNER: u32 = 0o6000;
/// `O_CREAT`, and the part of `O_TMPFILE` that no other flag has.
const MAKES_A_FILE: u32 = 0o20_000_100;
/// The ordinary personality, and the question which one it is.
const ORDINARY: [u32; 2] = [0, u32::MAX];

/// Applies the filter to this process and all it will start.
pub fn enforce(sockets: bool) -> io::Result<()> {
    seccompiler::apply_filter(&filter(sockets)).map_err(io::Error::other)
}

fn filter(sockets: bool) -> BpfProgram {
    let mut program = vec![load(4), jump(IS, ARCHITECTURE, 1, 0), answer(KILL), load(0)];
    program.extend([jump(AT_LEAST, SECOND_NUMBERING, 0, 1), answer(NO_SUCH_CALL)]);
    for call in OPAQUE {
        block(&mut program, call, &[answer(NO_SUCH_CALL)]);
    }
    block(&mut program, libc::SYS_clone, &no_bit_of(0, NAMESPACES));
    block(&mut program, libc::SYS_ioctl, &none_of(1, TERMINAL));
    block(&mut program, libc::SYS_personality, &one_of(0, ORDINARY));
    block(&mut program, libc::SYS_socketpair, &one_of(0, [family(libc::AF_UNIX); 2]));
    for (call, mode, flags) in MODES {
        let mut steps = Vec::new();
        if let Some(flags) = flags {
            // Where no file is made, on to the last answer.
            steps.extend([argument(*flags), jump(HAS, MAKES_A_FILE, 0, 3)]);
        }
        steps.extend(no_bit_of(*mode, RUNS_AS_OWNER));
        block(&mut program, *call, &steps);
    }
    let mut refused = REFUSED.to_vec();
    if sockets {
        block(&mut program, libc::SYS_socket, &ordinary_socket());
    } else {
        refused.extend(REFUSED_WITHOUT_SOCKETS);
    }
    for (call, done) in refused.iter().zip(1..) {
        // Over the rest of the list and the answer that allows.
        let rest = u8::try_from(refused.len() - done + 1).unwrap_or(u8::MAX);
        program.push(jump(IS, number(*call), rest, 0));
    }
    program.extend([answer(ALLOW), answer(REFUSE)]);
    program
}

/// Steps for one call. They end with an answer.
fn block(program: &mut BpfProgram, call: libc::c_long, steps: &[sock_filter]) {
    program.push(jump(IS, number(call), 0, u8::try_from(steps.len()).unwrap_or(u8::MAX)));
    program.extend_from_slice(steps);
}

fn no_bit_of(index: u32, bits: u32) -> [sock_filter; 4] {
    [argument(index), jump(HAS, bits, 0, 1), answer(REFUSE), answer(ALLOW)]
}

fn none_of(index: u32, [first, second]: [u32; 2]) -> [sock_filter; 5] {
    [argument(index), jump(IS, first, 1, 0), jump(IS, second, 0, 1), answer(REFUSE), answer(ALLOW)]
}

fn one_of(index: u32, [first, second]: [u32; 2]) -> [sock_filter; 5] {
    [argument(index), jump(IS, first, 2, 0), jump(IS, second, 1, 0), answer(REFUSE), answer(ALLOW)]
}

/// Unix and internet sockets, but not raw ones, and questions about the network's own state.
fn ordinary_socket() -> [sock_filter; 12] {
    const RAW: u32 = libc::SOCK_RAW.cast_unsigned();
    [
        argument(0),
        jump(IS, family(libc::AF_UNIX), 8, 0),
        jump(IS, family(libc::AF_NETLINK), 5, 0),
        jump(IS, family(libc::AF_INET), 1, 0),
        jump(IS, family(libc::AF_INET6), 0, 6),
        argument(1),
        sock_filter { code: AND, jt: 0, jf: 0, k: 0xf },
        jump(IS, RAW, 3, 2),
        argument(2),
        jump(IS, 0, 0, 1),
        answer(ALLOW),
        answer(REFUSE),
    ]
}

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const IS: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const HAS: u16 = 0x45;
const ANSWER: u16 = 0x06;

/// Loads four bytes of what the kernel tells about the call.
const fn load(offset: u32) -> sock_filter {
    sock_filter { code: LOAD, jt: 0, jf: 0, k: offset }
}

/// Loads the lower half of an argument, which is all the kernel looks at in these calls.
const fn argument(index: u32) -> sock_filter {
    load(16 + 8 * index)
}

const fn jump(code: u16, value: u32, then: u8, otherwise: u8) -> sock_filter {
    sock_filter { code, jt: then, jf: otherwise, k: value }
}

const fn answer(value: u32) -> sock_filter {
    sock_filter { code: ANSWER, jt: 0, jf: 0, k: value }
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

const fn family(family: libc::c_int) -> u32 {
    family.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers, step by step as the kernel would find out.
    fn ask(program: &[sock_filter], call: libc::c_long, arguments: &[u32]) -> u32 {
        let mut words = vec![number(call), ARCHITECTURE, 0, 0];
        words.extend(arguments.iter().flat_map(|argument| [*argument, 0xdead]));
        words.resize(16, 0);
        let (mut at, mut value) = (0, 0);
        loop {
            let step = &program[at];
            let mut go = |holds: bool| at += usize::from(if holds { step.jt } else { step.jf });
            match step.code {
                LOAD => value = words[step.k as usize / 4],
                AND => value &= step.k,
                IS => go(value == step.k),
                AT_LEAST => go(value >= step.k),
                HAS => go(value & step.k != 0),
                _ => return step.k,
            }
            at += 1;
        }
    }

    #[test]
    fn calls_are_answered_as_the_lists_say() {
        let (open, closed) = (filter(true), filter(false));
        for program in [&open, &closed] {
            for call in REFUSED {
                assert_eq!(ask(program, *call, &[]), REFUSE, "{call}");
            }
            for call in OPAQUE.into_iter().chain([0x4000_0000]) {
                assert_eq!(ask(program, call, &[]), NO_SUCH_CALL, "{call}");
            }
            for call in [libc::SYS_read, libc::SYS_execve, libc::SYS_wait4, libc::SYS_memfd_create] {
                assert_eq!(ask(program, call, &[]), ALLOW, "{call}");
            }
        }
        assert!(REFUSED_WITHOUT_SOCKETS.iter().all(|call| ask(&closed, *call, &[1]) == REFUSE));
        assert_eq!(ask(&open, libc::SYS_connect, &[3]), ALLOW);
        assert!(closed.len() < 200, "{}", closed.len());
    }

    #[test]
    fn arguments_decide_where_they_matter() {
        let (open, closed) = (filter(true), filter(false));
        let is = |call, arguments: &[u32], expected| {
            assert_eq!(ask(&open, call, arguments), expected, "{call} {arguments:?}");
        };
        is(libc::SYS_clone, &[17], ALLOW);
        is(libc::SYS_clone, &[0x003d_0f00], ALLOW);
        is(libc::SYS_clone, &[libc::CLONE_NEWUSER.cast_unsigned()], REFUSE);
        is(libc::SYS_ioctl, &[0, 0x5401], ALLOW);
        is(libc::SYS_ioctl, &[0, 0x5412], REFUSE);
        is(libc::SYS_ioctl, &[0, 0x541c], REFUSE);
        is(libc::SYS_personality, &[0], ALLOW);
        is(libc::SYS_personality, &[u32::MAX], ALLOW);
        is(libc::SYS_personality, &[0x0004_0000], REFUSE);
        is(libc::SYS_fchmod, &[3, 0o755], ALLOW);
        is(libc::SYS_fchmod, &[3, 0o4755], REFUSE);
        is(libc::SYS_fchmodat, &[3, 0, 0o2755], REFUSE);
        is(libc::SYS_openat, &[3, 0, 0o101, 0o644], ALLOW);
        is(libc::SYS_openat, &[3, 0, 0o101, 0o4755], REFUSE);
        is(libc::SYS_openat, &[3, 0, 0, 0o4755], ALLOW);
        is(libc::SYS_openat, &[3, 0, 0o20_200_002, 0o4755], REFUSE);
        for (arguments, expected) in [
            ([1, 1, 0], ALLOW),
            ([2, 1, 6], ALLOW),
            ([10, 0o2_000_002, 0], ALLOW),
            ([2, 3, 1], REFUSE),
            ([10, 0o2_000_003, 58], REFUSE),
            ([16, 3, 0], ALLOW),
            ([16, 3, 9], REFUSE),
            ([17, 3, 0], REFUSE),
            ([40, 1, 0], REFUSE),
        ] {
            is(libc::SYS_socket, &arguments, expected);
        }
        assert_eq!(ask(&closed, libc::SYS_socketpair, &[1, 1, 0]), ALLOW);
        assert_eq!(ask(&closed, libc::SYS_socketpair, &[2, 1, 0]), REFUSE);
    }
}
