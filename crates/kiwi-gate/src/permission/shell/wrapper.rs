//! Programs and builtins that run something else, and what that is.
//!
//! An interpreter (`python3`, `awk`, a shell with a script) is not looked through: whoever lists it lists everything it
//! can be told to do.

use super::judge::assigned;
use super::options::{Given, Spec, operands, options, value};
use super::programs::{git, tar};
use super::syntax::Word;
use super::wrappers::{Alone, SETARCH, Wrapper, opaque, wrapper};

/// What a program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Runs {
    /// Nothing but itself.
    Itself,
    /// Nobody can tell.
    Cannot(String),
    /// Others.
    Other(Others),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Others {
    /// Whether the program itself must be allowed too.
    pub itself: bool,
    pub commands: Vec<Vec<Word>>,
    /// Command lines for a shell.
    pub texts: Vec<String>,
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    /// Variables that are set.
    pub sets: Vec<String>,
    /// Whether the folder changes.
    pub moves: bool,
}

type Found = Result<Others, String>;

/// What a program of this name runs.
pub(super) fn of(name: &str, args: &[Word]) -> Runs {
    let found = match name {
        name if is_loader(name) => loader(args),
        "env" => env(args),
        "command" => command(args),
        "sudo" => privileged(args, &Spec { flags: "nHEbSP", valued: "ugprt", ..Spec::default() }),
        "doas" => privileged(args, &Spec { flags: "n", valued: "u", ..Spec::default() }),
        "xargs" => xargs(args),
        "find" => find(args),
        "watch" => watch(args),
        "flock" => flock(args),
        "setlock" => {
            let rest = operands(args, &Spec { flags: "nNxX", ..Spec::default() });
            rest.and_then(|rest| locked(rest, command_of))
        }
        "setarch" => setarch(args),
        "chrt" => chrt(args),
        "perf" => perf(args),
        "entr" => entr(args),
        "ip" => ip(args),
        "valgrind" if !args.iter().all(names_a_tool) => {
            Err("`valgrind` starts whatever `--tool` leads to".into())
        }
        "wait" if args.iter().any(|word| word.may_be_option() && !has_no_letter(word, 'p')) => {
            Err("what `wait` sets is only known when it runs".into())
        }
        "jobs" if args.iter().any(|word| word.fixed().is_none_or(|text| text.contains('x'))) => {
            Err("what `jobs` runs is only known when it runs".into())
        }
        "sh" | "bash" | "dash" | "ash" | "ksh" | "mksh" | "rbash" | "rksh" | "lksh" | "oksh" | "ksh93"
        | "yash" | "posh" | "hush" => shell(args),
        "zsh" | "rzsh" | "fish" | "csh" | "tcsh" | "pwsh" | "nu" | "elvish" | "xonsh" => {
            foreign_shell(name, args)
        }
        name if is_many(name) => many(name, args),
        "ssh" | "rsh" | "mosh" => Err(format!("`{name}` runs its command on another machine")),
        "eval" | "source" | "." | "trap" | "alias" | "unalias" | "fc" | "enable" | "bind" | "complete"
        | "compgen" | "hash" | "let" | "mapfile" | "readarray" | "shopt" => {
            Err(format!("what `{name}` leads to is only known when it runs"))
        }
        "cd" | "chdir" | "pushd" | "popd" => Ok(Others { itself: true, moves: true, ..Others::default() }),
        "export" | "readonly" | "local" | "declare" | "typeset" | "read" | "getopts" | "unset" => {
            variables(name, args)
        }
        "printf" | "test" | "[" => careful(name, args),
        "git" => git(args).map(|()| Others { itself: true, ..Others::default() }),
        "tar" | "gtar" | "bsdtar" => tar(args).map(|()| Others { itself: true, ..Others::default() }),
        name => match (wrapper(name), opaque(name)) {
            (Some(wrapper), _) => wrapped(args, wrapper),
            (None, Some(why)) => Err(format!("`{name}` cannot be looked through: {why}")),
            (None, None) => return Runs::Itself,
        },
    };
    match found {
        Ok(others) if others == (Others { itself: true, ..Others::default() }) => Runs::Itself,
        Ok(others) => Runs::Other(others),
        Err(why) => Runs::Cannot(why),
    }
}

/// Options, some words, and then a command.
fn wrapped(args: &[Word], wrapper: &Wrapper) -> Found {
    let mut rest = operands(args, &wrapper.options)?;
    if wrapper.reorders && !is_closed(args, rest) && rest.iter().any(Word::may_be_option) {
        return Err("an option of the command may be taken from it".into());
    }
    for _ in 0..wrapper.skipped.min(rest.len()) {
        (_, rest) = value(rest)?;
    }
    let alone = if wrapper.alone == Alone::Shell { begun_shell() } else { command_of(&[]) };
    let others = if rest.is_empty() { alone } else { command_of(rest) };
    Ok(Others { itself: others.itself || wrapper.is_judged, ..others })
}

/// Whether `--` stands in front of what is left of the words.
fn is_closed(args: &[Word], rest: &[Word]) -> bool {
    let before = args.get(..args.len() - rest.len()).unwrap_or_default();
    before.last().and_then(Word::fixed) == Some("--")
}

/// Whether a word, if it says which tool of `valgrind` is meant, says so by a plain name and not by a path.
fn names_a_tool(word: &Word) -> bool {
    let tool = word.fixed().and_then(|text| text.strip_prefix("--tool="));
    tool.is_none_or(|tool| tool.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
}

/// A command. Without one nothing runs but the program itself.
fn command_of(words: &[Word]) -> Others {
    let commands = Vec::from_iter((!words.is_empty()).then(|| words.to_vec()));
    Others { itself: commands.is_empty(), commands, ..Others::default() }
}

/// A shell that is told nothing: it reads what it is to do.
fn begun_shell() -> Others {
    command_of(&[Word::Fixed("sh".into())])
}

/// Whether this is the program that loads others, under any of its names: `ld.so`, `ld-linux-x86-64.so.2`, `ld-2.31.so`.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld") && name.contains(".so")
}

/// It looks for a program where libraries lie, unless it is told a path.
fn loader(args: &[Word]) -> Found {
    let rest = operands(args, &Spec::default())?;
    let is_path = |word: &Word| word.fixed().is_some_and(|text| text.contains('/'));
    if rest.first().is_some_and(|first| !is_path(first)) {
        return Err("which program is loaded is only known when it runs".into());
    }
    Ok(command_of(rest))
}

/// Whether this program is another one under each of its names.
pub(super) fn is_many(name: &str) -> bool {
    matches!(name, "toybox" | "coreutils" | "setarch") || name.starts_with("busybox")
}

/// Called by its own name, it is what its first word says.
fn many(name: &str, args: &[Word]) -> Found {
    match args.first() {
        None => Ok(command_of(&[])),
        Some(first) if first.may_be_option() => Err(format!("what `{name}` is told to be cannot be told")),
        Some(_) => Ok(command_of(args)),
    }
}

/// A file that is made where it is missing, and then what runs while it is locked.
fn locked(words: &[Word], run: impl Fn(&[Word]) -> Others) -> Found {
    let Some((file, rest)) = words.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Ok(command_of(&[]));
    };
    let file = file.fixed().ok_or("which file is locked is only known when it runs")?;
    let others = run(rest);
    Ok(Others { writes: vec![file.to_owned()], ..others })
}

fn flock(args: &[Word]) -> Found {
    let spec = Spec {
        flags: "sexnoFu",
        valued: "wE",
        long: &["shared", "exclusive", "unlock", "nonblock", "nb", "close", "no-fork", "verbose"],
        long_valued: &["timeout", "wait", "conflict-exit-code"],
    };
    let rest = operands(args, &spec)?;
    let is_text = |word: &Word| matches!(word.fixed(), Some("-c" | "--command"));
    let Some(at) = rest.get(1).filter(|word| is_text(word)).map(|_| 2) else {
        return locked(rest, command_of);
    };
    let text = rest.get(at).and_then(Word::fixed).ok_or("what `flock` runs is only known when it runs")?;
    locked(rest, |_| Others { texts: vec![text.to_owned()], ..Others::default() })
}

/// A kind of machine may stand in front of the options.
fn setarch(args: &[Word]) -> Found {
    let is_machine = args.first().is_some_and(|first| !first.may_be_option());
    let rest = operands(args.get(usize::from(is_machine)..).unwrap_or_default(), &SETARCH)?;
    Ok(if rest.is_empty() { begun_shell() } else { command_of(rest) })
}

/// A priority, which newer versions do without for some policies, and a command.
fn chrt(args: &[Word]) -> Found {
    let spec = Spec {
        flags: "abdefiormpRv",
        valued: "TPD",
        long: &[
            "all-tasks",
            "batch",
            "deadline",
            "ext",
            "fifo",
            "idle",
            "other",
            "rr",
            "max",
            "pid",
            "reset-on-fork",
            "verbose",
        ],
        long_valued: &["sched-runtime", "sched-period", "sched-deadline"],
    };
    let is_number = |word: &Word| {
        word.fixed().is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    match operands(args, &spec)?.split_first() {
        None => Ok(command_of(&[])),
        Some((first, rest)) if is_number(first) => Ok(command_of(rest)),
        Some(_) => Err("`chrt` is given no priority".into()),
    }
}

fn perf(args: &[Word]) -> Found {
    let (first, rest) = args.split_first().ok_or("what `perf` runs cannot be told")?;
    if !matches!(first.fixed(), Some("stat" | "record")) {
        return Err("what `perf` runs cannot be told".into());
    }
    let rest = operands(rest, &Spec { flags: "adgv", valued: "CFer", ..Spec::default() })?;
    Ok(Others { itself: true, ..command_of(rest) })
}

/// `/_` stands for the file that changed.
fn entr(args: &[Word]) -> Found {
    let rest = operands(args, &Spec { flags: "acdnprz", ..Spec::default() })?;
    let mark = ["/_".to_owned()];
    let words: Vec<Word> = rest.iter().map(|word| filled(word, &mark)).collect();
    Ok(command_of(&words))
}

/// `ip netns exec` and `ip vrf exec` run a command, and a batch may say so; every word may be shortened.
fn ip(args: &[Word]) -> Found {
    let is_odd = |word: &Word| match word {
        Word::Fixed(text) => {
            let option = text.trim_start_matches('-');
            ("exec".starts_with(text.as_str()) && !text.is_empty())
                || (text.starts_with('-') && !option.is_empty() && "batch".starts_with(option))
        }
        // Any beginning of `exec` would do.
        Word::Open { .. } => true,
    };
    if args.iter().any(is_odd) {
        return Err("`ip` can be told to run anything".into());
    }
    Ok(Others { itself: true, ..Others::default() })
}

fn env(args: &[Word]) -> Found {
    let spec = Spec {
        flags: "i0v",
        valued: "uC",
        long: &["ignore-environment", "null", "debug"],
        long_valued: &["unset", "chdir"],
    };
    let options = options(args, &spec)?;
    let moves = options.given.iter().any(|option| matches!(option.name, "C" | "chdir"));
    let rest = options.rest;
    let rest = if rest.first().and_then(Word::fixed) == Some("-") {
        rest.get(1..).unwrap_or_default()
    } else {
        rest
    };
    let (sets, rest) = assignments(rest)?;
    // An assignment whose name is not one to a shell is one to `env`.
    if rest.first().is_some_and(|word| word.fixed().is_none_or(|text| text.contains('='))) {
        return Err("what `env` runs cannot be told".into());
    }
    let commands = Vec::from_iter((!rest.is_empty()).then(|| rest.to_vec()));
    Ok(Others { itself: commands.is_empty(), commands, sets, moves, ..Others::default() })
}

/// The variables that are set in front of a command, and the command.
fn assignments(words: &[Word]) -> Result<(Vec<String>, &[Word]), String> {
    let mut sets = Vec::new();
    let mut rest = words;
    while let Some(name) = rest.first().and_then(assigned) {
        sets.push(name.to_owned());
        (_, rest) = value(rest)?;
    }
    Ok((sets, rest))
}

fn command(args: &[Word]) -> Found {
    let asks = |word: &Word| word.fixed().is_some_and(|text| matches!(text, "-v" | "-V" | "-pv" | "-pV"));
    if args.first().is_some_and(asks) {
        return Ok(Others::default());
    }
    Ok(command_of(operands(args, &Spec { flags: "p", ..Spec::default() })?))
}

fn privileged(args: &[Word], spec: &Spec<'_>) -> Found {
    let rest = operands(args, spec)?;
    let (sets, rest) = assignments(rest)?;
    if rest.is_empty() {
        return Err("it runs nothing that is named".into());
    }
    Ok(Others { itself: true, commands: vec![rest.to_vec()], sets, ..Others::default() })
}

fn xargs(args: &[Word]) -> Found {
    let spec = Spec {
        flags: "0rtpxoeil",
        valued: "dEILnPseil",
        long: &["null", "no-run-if-empty", "verbose", "exit", "open-tty", "eof", "max-lines", "replace"],
        long_valued: &["delimiter", "max-args", "max-procs", "max-chars", "eof", "max-lines", "replace"],
    };
    let options = options(args, &spec)?;
    let rest = options.rest;
    let marks = marks(&options.given)?;
    let mut command: Vec<Word> = rest.iter().map(|word| filled(word, &marks)).collect();
    if command.is_empty() {
        command.push(Word::Fixed("echo".into()));
    }
    command.push(Word::Open { prefix: String::new(), is_split: true });
    Ok(Others { commands: vec![command], ..Others::default() })
}

/// What stands for the input of `xargs`: whatever it is told, and `{}` in any case.
fn marks(given: &[Given<'_>]) -> Result<Vec<String>, String> {
    let mut marks = vec!["{}".to_owned()];
    let told = given.iter().filter(|option| matches!(option.name, "I" | "i" | "replace"));
    for mark in told.filter_map(|option| option.value.as_ref()) {
        let mark = mark.fixed().ok_or("what stands for the input is only known when it runs")?;
        marks.push(mark.to_owned());
    }
    marks.retain(|mark| !mark.is_empty());
    Ok(marks)
}

/// A word in which one of these stands for something else.
fn filled(word: &Word, marks: &[String]) -> Word {
    let Some(text) = word.fixed() else { return word.clone() };
    match marks.iter().filter_map(|mark| text.find(mark.as_str())).min() {
        Some(at) => Word::Open { prefix: text.get(..at).unwrap_or_default().to_owned(), is_split: false },
        None => word.clone(),
    }
}

fn find(args: &[Word]) -> Found {
    let mut others = Others { itself: true, ..Others::default() };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.fixed() else {
            if word.may_be_option() {
                return Err("what `find` is told is only known when it runs".into());
            }
            continue;
        };
        let mut file =
            || words.next().and_then(Word::fixed).map(str::to_owned).ok_or("what `find` writes is not known");
        match text {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let command = found_command(&mut words)?;
                others.moves |= text.ends_with("dir");
                others.commands.push(command);
            }
            "-delete" => others
                .commands
                .push(vec![Word::Fixed("rm".into()), Word::Open { prefix: String::new(), is_split: true }]),
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => others.writes.push(file()?),
            "-files0-from" => others.reads.push(file()?),
            _ => {}
        }
    }
    Ok(others)
}

/// The words of a command of `find`, up to and with what ends it.
fn found_command<'a>(words: &mut impl Iterator<Item = &'a Word>) -> Result<Vec<Word>, String> {
    let mark = ["{}".to_owned()];
    let mut command = Vec::new();
    let mut last: Option<&Word> = None;
    loop {
        let word = words.next().ok_or("a command of `find` is never closed")?;
        let may_end = |end: &str| word.fixed().is_none() && word.may_begin(end);
        if may_end(";") || may_end("+") {
            return Err("where a command of `find` ends is only known when it runs".into());
        }
        // What looks like another test may be one, and the `-exec` in front of it a name.
        if command.is_empty() && ["-", "(", "!", ","].iter().any(|begin| word.may_begin(begin)) {
            return Err("what `find` runs cannot be told".into());
        }
        match word.fixed() {
            Some(";") => return Ok(command),
            Some("+") if last.and_then(Word::fixed) == Some("{}") => return Ok(command),
            Some("+") if command.last().is_some_and(|last| last.fixed().is_none()) => {
                return Err("where a command of `find` ends cannot be told".into());
            }
            _ => command.push(filled(word, &mark)),
        }
        last = Some(word);
    }
}

fn watch(args: &[Word]) -> Found {
    let long =
        &["beep", "color", "differences", "errexit", "chgexit", "no-title", "no-wrap", "precise", "exec"];
    let spec = Spec { flags: "bcdegtwpx", valued: "nd", long, long_valued: &["interval", "differences"] };
    let rest = operands(args, &spec)?;
    let words: Option<Vec<&str>> = rest.iter().map(Word::fixed).collect();
    let text = words.ok_or("what `watch` runs is only known when it runs")?.join(" ");
    // With `-x` the words are the command, without it they are a line for a shell.
    Ok(Others { texts: vec![text], commands: vec![rest.to_vec()], ..Others::default() })
}

fn shell(args: &[Word]) -> Found {
    let spec = Spec { flags: "abcefhmnuvxC", valued: "o", ..Spec::default() };
    let mentions_text = args.iter().any(|word| match word {
        Word::Fixed(text) => text.starts_with('-') && !text.starts_with("--") && text.contains('c'),
        Word::Open { .. } => word.may_be_option(),
    });
    if !mentions_text {
        return Ok(Others { itself: true, ..Others::default() });
    }
    let options = options(args, &spec)?;
    let is_text = options.given.iter().any(|option| option.name == "c");
    // Behind `o` some shells read on in the same word and some in the next one.
    if options.given.iter().any(|option| option.name == "o" && !option.is_apart) {
        return Err("what the shell is told to run cannot be told".into());
    }
    match options.rest.first().and_then(Word::fixed) {
        // These are options, or the end of them.
        Some(text) if text.starts_with(['-', '+']) => {
            Err("what the shell is told to run cannot be told".into())
        }
        // A script, whose arguments are its own.
        _ if !is_text => Ok(Others { itself: true, ..Others::default() }),
        Some(text) => Ok(Others { texts: vec![text.to_owned()], ..Others::default() }),
        None => Err("what the shell is told to run is only known when it runs".into()),
    }
}

/// A shell whose language is not read here. With a script, or told nothing, it is an interpreter.
fn foreign_shell(name: &str, args: &[Word]) -> Found {
    let tells = |word: &Word| match word {
        Word::Fixed(text) => text.starts_with('-') && text.contains(['c', 'C', 'e']),
        Word::Open { .. } => word.may_be_option(),
    };
    if args.iter().any(tells) {
        return Err(format!("what is said to `{name}` is not read here"));
    }
    Ok(Others { itself: true, ..Others::default() })
}

/// Builtins whose arguments are names of variables.
fn variables(name: &str, args: &[Word]) -> Found {
    careful(name, args)?;
    if name != "read" && name != "unset" && args.iter().any(is_attribute) {
        return Err(format!("what `{name}` makes of a variable is only known when it runs"));
    }
    let mut sets = Vec::new();
    for word in args {
        match (assigned(word), word) {
            // In some shells what stands behind `=` becomes several words, and each is one more variable.
            (_, Word::Open { .. }) if word.is_split() || assigned(word).is_none() => {
                return Err(format!("which variable `{name}` sets is only known when it runs"));
            }
            (Some(name), _) => sets.push(name.to_owned()),
            (None, Word::Fixed(text)) if text.starts_with('-') => {
                if text.starts_with("-f") && matches!(name, "export" | "readonly" | "local") {
                    return Err("functions cannot be judged".into());
                }
                sets.extend(joined(text));
            }
            // Said again, or taken away: `export PATH` changes nothing, `unset PATH` and `read PATH` do.
            (None, _) if matches!(name, "export" | "readonly" | "local") => {}
            (None, word) => sets.extend(word.fixed().map(str::to_owned)),
        }
    }
    Ok(Others { itself: true, sets, ..Others::default() })
}

/// Whether a word is known to be without this letter.
fn has_no_letter(word: &Word, letter: char) -> bool {
    word.fixed().is_some_and(|text| !text.contains(letter))
}

/// Whether a word makes a variable stand for another one, or evaluates whatever it is set to: `-n` and `-i`.
fn is_attribute(word: &Word) -> bool {
    word.fixed().is_some_and(|text| text.starts_with(['-', '+']) && text.contains(['n', 'i']))
}

/// Whatever may be the name of a variable in a word of letters: `PATH` in `-raPATH`.
fn joined(letters: &str) -> impl Iterator<Item = String> {
    letters.char_indices().skip(1).filter_map(|(at, _)| letters.get(at..)).map(str::to_owned)
}

/// Builtins that in some shells evaluate what they are given, or set variables by an option.
fn careful(name: &str, args: &[Word]) -> Found {
    let evaluates = |word: &Word| match word {
        Word::Fixed(text) => {
            text.contains("$(") || text.contains('`') || matches!(text.as_str(), "-v" | "-R" | "-n")
        }
        Word::Open { .. } => false,
    };
    let is_test = matches!(name, "test" | "[");
    let is_odd = |word: &Word| evaluates(word) && !(is_test && word.fixed() == Some("-n"));
    if args.iter().any(is_odd) || (is_test && may_evaluate(args)) {
        return Err(format!("what `{name}` evaluates is only known when it runs"));
    }
    if name == "printf" && may_set(args) {
        return Err("what `printf` sets is only known when it runs".into());
    }
    Ok(Others { itself: true, ..Others::default() })
}

/// Whether a word may turn out to be `-v`, with something behind it that is evaluated then.
fn may_evaluate(args: &[Word]) -> bool {
    let is_evaluated = |word: &Word| word.fixed().is_none_or(|text| text.contains('['));
    let pairs = args.iter().zip(args.iter().skip(1));
    args.iter().any(Word::is_split)
        || pairs
            .into_iter()
            .any(|(word, next)| word.fixed().is_none() && word.may_be_option() && is_evaluated(next))
}

/// Whether `printf` may be told to set a variable: by `-v`, alone or joined to a name, or by `%n` in its format.
fn may_set(args: &[Word]) -> bool {
    let Some((first, rest)) = args.split_first() else { return false };
    let format = if first.fixed() == Some("--") { rest.first() } else { Some(first) };
    let sets = |format: &Word| match format.fixed() {
        Some(text) => text.replace("%%", "").split('%').skip(1).any(|behind| {
            behind.trim_start_matches(|c| "0123456789 #+-.*'$hlLjzt".contains(c)).starts_with('n')
        }),
        None => true,
    };
    first.may_begin("-v")
        || (args.len() > 1 && format.is_some_and(sets))
        || format.is_some_and(Word::is_split)
}
