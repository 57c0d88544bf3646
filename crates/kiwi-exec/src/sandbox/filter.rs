//! Seccomp: the kernel asks this filter before every system call, and calls that lead towards the host are refused.
//!
//! Refused calls answer "not permitted", so that programs that only try go on. Another architecture's calls end the
//! process, because the numbers would mean something else there. There are two, and a call goes through where both let it:
//! most of it is in force while the walls are still being built, and what that takes is refused in the end. Each is a search
//! tree over the numbers of calls, because the kernel walks through it for every number when it is applied, and that is part
//! of every start.

use kiwi_launcher::kernel::seccomp::Step;
use kiwi_launcher::plan::{Filter, Filters};
use nix::libc;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::calls::{BUILDING, MODES, OPAQUE, OPAQUE_BUILDING, REFUSED, REFUSED_WITHOUT_SOCKETS};

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
/// The kernel walks through the filter for every number below about this one.
const END: u32 = 470;
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

/// The filters for tools that may make sockets, or may not. One that cannot be written down is empty; then nothing starts.
pub fn filters(sockets: bool) -> Filters {
    static FILTERS: [LazyLock<Filters>; 2] =
        [LazyLock::new(|| written(false)), LazyLock::new(|| written(true))];
    let [closed, open] = &FILTERS;
    Filters::clone(if sockets { open } else { closed })
}

fn written(sockets: bool) -> Filters {
    let filter = |special| Filter::of(&steps(&special).unwrap_or_default());
    Filters { early: filter(special(sockets)), last: filter(building()) }
}

/// What is done with a call; ends with an answer.
type Steps = Vec<Step>;

/// `None` if it cannot be written down; then nothing starts.
fn steps(special: &Special) -> Option<Vec<Step>> {
    let rules = rules(special);
    let ends = Ends::of(&rules);
    let mut program = vec![load(4), jump(IS, ARCHITECTURE, 1, 0), answer(KILL), load(0)];
    match tree(&rules, &ends, END, 0)? {
        Part::Steps(steps) => program.extend(steps),
        Part::End(_) => return None,
    }
    program.extend(ends.0.concat());
    Some(program)
}

/// What is done with calls stands once each, behind the tree: the kernel translates the whole filter at every start.
struct Ends(Vec<Steps>);

impl Ends {
    fn of(rules: &[(u32, Steps)]) -> Self {
        let mut ends: Vec<Steps> = Vec::new();
        for (_, steps) in rules {
            if !ends.contains(steps) {
                ends.push(steps.clone());
            }
        }
        Self(ends)
    }

    /// How many steps stand before these.
    fn place(&self, steps: &Steps) -> usize {
        self.0.iter().take_while(|end| *end != steps).map(Vec::len).sum()
    }
}

/// The calls that are not simply allowed, by number.
type Special = BTreeMap<u32, Steps>;

/// Those that only building walls takes.
fn building() -> Special {
    let refused = BUILDING.map(|call| (number(call), vec![answer(REFUSE)]));
    let opaque = OPAQUE_BUILDING.map(|call| (number(call), vec![answer(NO_SUCH_CALL)]));
    refused.into_iter().chain(opaque).collect()
}

/// All others.
fn special(sockets: bool) -> Special {
    let mut special = Special::new();
    let mut put = |call: libc::c_long, steps: Steps| special.insert(number(call), steps);
    for call in OPAQUE {
        put(call, vec![answer(NO_SUCH_CALL)]);
    }
    put(libc::SYS_clone, no_bit_of(0, NAMESPACES).into());
    put(libc::SYS_ioctl, none_of(1, TERMINAL).into());
    put(libc::SYS_personality, one_of(0, ORDINARY).into());
    put(libc::SYS_socketpair, one_of(0, [family(libc::AF_UNIX); 2]).into());
    for (call, mode, flags) in MODES {
        let mut steps = Vec::new();
        if let Some(flags) = flags {
            // Where no file is made, on to the last answer.
            steps.extend([argument(*flags), jump(HAS, MAKES_A_FILE, 0, 3)]);
        }
        steps.extend(no_bit_of(*mode, RUNS_AS_OWNER));
        put(*call, steps);
    }
    let without_sockets = if sockets { &[][..] } else { REFUSED_WITHOUT_SOCKETS };
    if sockets {
        put(libc::SYS_socket, ordinary_socket().into());
    }
    for call in REFUSED.iter().chain(without_sockets) {
        put(*call, vec![answer(REFUSE)]);
    }
    special
}

/// Rules for all numbers: each holds from its number to the next one's.
fn rules(special: &Special) -> Vec<(u32, Steps)> {
    let mut rules: Vec<(u32, Steps)> = vec![(0, vec![answer(ALLOW)])];
    let mut put = |from: u32, steps: &[Step]| {
        rules.pop_if(|(last, _)| *last == from);
        if rules.last().is_none_or(|(_, last)| last != steps) {
            rules.push((from, steps.to_vec()));
        }
    };
    for (call, steps) in special {
        put(*call, steps);
        put(call + 1, &[answer(ALLOW)]);
    }
    put(SECOND_NUMBERING, &[answer(NO_SUCH_CALL)]);
    rules
}

/// A part of the search tree.
enum Part {
    /// Steps of its own.
    Steps(Steps),
    /// What is done in the end, by how many steps stand before it there.
    End(usize),
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Self::Steps(steps) => steps.len(),
            Self::End(_) => 0,
        }
    }

    /// How many steps a jump to it passes, if it would begin behind `before` steps and the ends behind `ends`.
    fn distance(&self, before: usize, ends: usize) -> Option<u8> {
        u8::try_from(match self {
            Self::Steps(_) => before,
            Self::End(place) => ends + place,
        })
        .ok()
    }
}

/// The part that finds the rule for the loaded number, which is below `end` when the filter is applied, and follows it.
/// Behind it come `after` other steps, and then the ends.
fn tree(rules: &[(u32, Steps)], ends: &Ends, end: u32, after: usize) -> Option<Part> {
    let (lower, upper) = rules.split_at_checked(middle(rules, end).unwrap_or(0))?;
    let (Some(_), Some((from, _))) = (lower.first(), upper.first()) else {
        return rules.first().map(|(_, steps)| Part::End(ends.place(steps)));
    };
    let upper = tree(upper, ends, end, after)?;
    let lower = tree(lower, ends, *from, after + upper.len())?;
    let behind = lower.len() + upper.len() + after;
    let (then, otherwise) = (upper.distance(lower.len(), behind)?, lower.distance(0, behind)?);
    let mut program = vec![jump(AT_LEAST, *from, then, otherwise)];
    for part in [lower, upper] {
        if let Part::Steps(steps) = part {
            program.extend(steps);
        }
    }
    Some(Part::Steps(program))
}

/// Where rules that end before `end` are parted: as near as can be to the middle of their numbers, since all numbers count
/// alike.
fn middle(rules: &[(u32, Steps)], end: u32) -> Option<usize> {
    let (first, _) = rules.first()?;
    let middle = u32::midpoint(*first, end);
    let others = rules.iter().enumerate().skip(1);
    others.min_by_key(|(_, (from, _))| from.min(&END).abs_diff(middle)).map(|(place, _)| place)
}

fn no_bit_of(index: u32, bits: u32) -> [Step; 4] {
    [argument(index), jump(HAS, bits, 0, 1), answer(REFUSE), answer(ALLOW)]
}

fn none_of(index: u32, [first, second]: [u32; 2]) -> [Step; 5] {
    [argument(index), jump(IS, first, 1, 0), jump(IS, second, 0, 1), answer(REFUSE), answer(ALLOW)]
}

fn one_of(index: u32, [first, second]: [u32; 2]) -> [Step; 5] {
    [argument(index), jump(IS, first, 2, 0), jump(IS, second, 1, 0), answer(REFUSE), answer(ALLOW)]
}

/// Unix and internet sockets, but not raw ones, and questions about the network's own state.
fn ordinary_socket() -> [Step; 12] {
    const RAW: u32 = libc::SOCK_RAW.cast_unsigned();
    [
        argument(0),
        jump(IS, family(libc::AF_UNIX), 8, 0),
        jump(IS, family(libc::AF_NETLINK), 5, 0),
        jump(IS, family(libc::AF_INET), 1, 0),
        jump(IS, family(libc::AF_INET6), 0, 6),
        argument(1),
        Step { code: AND, then: 0, otherwise: 0, value: 0xf },
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
const fn load(offset: u32) -> Step {
    Step { code: LOAD, then: 0, otherwise: 0, value: offset }
}

/// Loads the lower half of an argument, which is all the kernel looks at in these calls.
const fn argument(index: u32) -> Step {
    load(16 + 8 * index)
}

const fn jump(code: u16, value: u32, then: u8, otherwise: u8) -> Step {
    Step { code, then, otherwise, value }
}

const fn answer(value: u32) -> Step {
    Step { code: ANSWER, then: 0, otherwise: 0, value }
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
    use kiwi_launcher::wire;

    /// What both answer: nothing is allowed that one of them refuses.
    struct Both(Vec<Step>, Vec<Step>);

    fn both(sockets: bool) -> Both {
        let Filters { early, last } = filters(sockets);
        Both(early.steps().unwrap(), last.steps().unwrap())
    }

    fn ask(Both(early, last): &Both, call: libc::c_long, arguments: &[u32]) -> u32 {
        // Of two answers the kernel takes the lower one, as far as they are no errors of different kinds.
        ask_one(early, call, arguments).min(ask_one(last, call, arguments))
    }

    /// What one filter answers, step by step as the kernel would find out.
    fn ask_one(program: &[Step], call: libc::c_long, arguments: &[u32]) -> u32 {
        let mut words = vec![number(call), ARCHITECTURE, 0, 0];
        words.extend(arguments.iter().flat_map(|argument| [*argument, 0xdead]));
        words.resize(16, 0);
        let (mut at, mut value) = (0, 0);
        loop {
            let step = &program[at];
            let mut go = |holds: bool| at += usize::from(if holds { step.then } else { step.otherwise });
            match step.code {
                LOAD => value = words[step.value as usize / 4],
                AND => value &= step.value,
                IS => go(value == step.value),
                AT_LEAST => go(value >= step.value),
                HAS => go(value & step.value != 0),
                _ => return step.value,
            }
            at += 1;
        }
    }

    #[test]
    fn calls_are_answered_as_the_lists_say() {
        let (open, closed) = (both(true), both(false));
        for program in [&open, &closed] {
            for call in REFUSED.iter().chain(&BUILDING) {
                assert_eq!(ask(program, *call, &[]), REFUSE, "{call}");
            }
            for call in OPAQUE.into_iter().chain(OPAQUE_BUILDING).chain([0x4000_0000]) {
                assert_eq!(ask(program, call, &[]), NO_SUCH_CALL, "{call}");
            }
            for call in [libc::SYS_read, libc::SYS_execve, libc::SYS_wait4, libc::SYS_memfd_create] {
                assert_eq!(ask(program, call, &[]), ALLOW, "{call}");
            }
        }
        assert!(REFUSED_WITHOUT_SOCKETS.iter().all(|call| ask(&closed, *call, &[1]) == REFUSE));
        assert_eq!(ask(&open, libc::SYS_connect, &[3]), ALLOW);
        // Every number that is in no list, and the edges of those that are.
        let lists = [REFUSED, REFUSED_WITHOUT_SOCKETS, &BUILDING, &OPAQUE, &OPAQUE_BUILDING].concat();
        let argued =
            [libc::SYS_clone, libc::SYS_ioctl, libc::SYS_personality, libc::SYS_socketpair, libc::SYS_socket];
        let is_special = |call| {
            lists.contains(&call) || argued.contains(&call) || MODES.iter().any(|(other, ..)| *other == call)
        };
        for call in (0..1000).filter(|call| !is_special(*call)) {
            assert_eq!((ask(&open, call, &[]), ask(&closed, call, &[])), (ALLOW, ALLOW), "{call}");
        }
    }

    #[test]
    fn the_launcher_is_told_the_filters_themselves() {
        for sockets in [false, true] {
            let told = wire::frame(&filters(sockets)).unwrap();
            let heard: Filters = wire::unframe(&told).unwrap().unwrap();
            assert_eq!(heard.early.steps().unwrap(), steps(&special(sockets)).unwrap());
            assert_eq!(heard.last.steps().unwrap(), steps(&building()).unwrap());
        }
        let garbled: Filter = wire::unframe(&wire::frame(&"AAAA").unwrap()).unwrap().unwrap();
        assert!(garbled.steps().is_err());
    }

    /// Who builds walls is behind the first filter already.
    #[test]
    fn the_first_filter_lets_walls_be_built() {
        for sockets in [false, true] {
            let Both(early, last) = both(sockets);
            for call in BUILDING.into_iter().chain(OPAQUE_BUILDING) {
                assert_eq!(ask_one(&early, call, &[]), ALLOW, "{call}");
            }
            assert!(
                last.len() * 4 < early.len(),
                "the last is the small one: {} {}",
                last.len(),
                early.len()
            );
        }
    }

    #[test]
    fn arguments_decide_where_they_matter() {
        let (open, closed) = (both(true), both(false));
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
