//! Programs and builtins that run something else, and what that is.
//!
//! An interpreter (`python3`, `awk`, a shell with a script) is not looked through: whoever lists it lists everything it
//! can be told to do.

use super::judge::assigned;
use super::options::{Spec, operands};
use super::programs::{git, tar};
use super::syntax::Word;

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
        "env" => env(args),
        "nice" => plain(
            args,
            &Spec { flags: "0123456789", valued: "n", long: &[], long_valued: &["adjustment"] },
            0,
        ),
        "timeout" => {
            let long = &["foreground", "preserve-status", "verbose"];
            plain(args, &Spec { flags: "fpv", valued: "ks", long, long_valued: &["kill-after", "signal"] }, 1)
        }
        "nohup" | "builtin" => plain(args, &Spec::default(), 0),
        "setsid" => {
            plain(args, &Spec { flags: "cfw", long: &["ctty", "fork", "wait"], ..Spec::default() }, 0)
        }
        "time" => plain(
            args,
            &Spec { flags: "pvq", long: &["portability", "verbose", "quiet"], ..Spec::default() },
            0,
        ),
        "command" => command(args),
        "exec" => plain(args, &Spec { flags: "cl", valued: "a", ..Spec::default() }, 0),
        "sudo" => privileged(args, &Spec { flags: "nHEbSP", valued: "ugprt", ..Spec::default() }),
        "doas" => privileged(args, &Spec { flags: "n", valued: "u", ..Spec::default() }),
        "xargs" => xargs(args),
        "find" => find(args),
        "watch" => watch(args),
        "sh" | "bash" | "dash" | "ash" | "ksh" | "mksh" => shell(args),
        "busybox" | "toybox" if args.first().is_some_and(|first| !first.may_be_option()) => {
            Ok(Others { commands: vec![args.to_vec()], ..Others::default() })
        }
        "ssh" | "rsh" | "mosh" => Err(format!("`{name}` runs its command on another machine")),
        "eval" | "source" | "." | "trap" | "alias" | "unalias" | "fc" | "enable" | "bind" | "complete"
        | "hash" | "let" | "mapfile" | "readarray" | "shopt" => {
            Err(format!("what `{name}` leads to is only known when it runs"))
        }
        "cd" | "chdir" | "pushd" | "popd" => Ok(Others { itself: true, moves: true, ..Others::default() }),
        "export" | "readonly" | "local" | "declare" | "typeset" | "read" | "getopts" | "unset" => {
            variables(name, args)
        }
        "printf" | "test" | "[" => careful(name, args),
        "git" => git(args).map(|()| Others { itself: true, ..Others::default() }),
        "tar" | "gtar" | "bsdtar" => tar(args).map(|()| Others { itself: true, ..Others::default() }),
        _ => return Runs::Itself,
    };
    match found {
        Ok(others) if others == (Others { itself: true, ..Others::default() }) => Runs::Itself,
        Ok(others) => Runs::Other(others),
        Err(why) => Runs::Cannot(why),
    }
}

/// Options, `skipped` operands, and then a command. Without one it runs nothing.
fn plain(args: &[Word], spec: &Spec<'_>, skipped: usize) -> Found {
    let rest = operands(args, spec)?.get(skipped..).unwrap_or_default();
    let commands = Vec::from_iter((!rest.is_empty()).then(|| rest.to_vec()));
    Ok(Others { itself: commands.is_empty(), commands, ..Others::default() })
}

fn env(args: &[Word]) -> Found {
    let chdir =
        |word: &Word| word.fixed().is_some_and(|text| text.starts_with("-C") || text.starts_with("--chdir"));
    let spec = Spec {
        flags: "i0v",
        valued: "uC",
        long: &["ignore-environment", "null", "debug"],
        long_valued: &["unset", "chdir"],
    };
    let (options, rest): (&[Word], &[Word]) = {
        let rest = operands(args, &spec)?;
        (args.get(..args.len() - rest.len()).unwrap_or_default(), rest)
    };
    let rest = if rest.first().and_then(Word::fixed) == Some("-") {
        rest.get(1..).unwrap_or_default()
    } else {
        rest
    };
    let count = rest.iter().take_while(|word| assigned(word).is_some()).count();
    let sets = rest.iter().take(count).filter_map(assigned).map(str::to_owned).collect();
    let rest = rest.get(count..).unwrap_or_default();
    // An assignment whose name is not one to a shell is one to `env`.
    if rest.first().is_some_and(|word| word.fixed().is_none_or(|text| text.contains('='))) {
        return Err("what `env` runs cannot be told".into());
    }
    let commands = Vec::from_iter((!rest.is_empty()).then(|| rest.to_vec()));
    Ok(Others {
        itself: commands.is_empty(),
        commands,
        sets,
        moves: options.iter().any(chdir),
        ..Others::default()
    })
}

fn command(args: &[Word]) -> Found {
    let asks = |word: &Word| word.fixed().is_some_and(|text| matches!(text, "-v" | "-V" | "-pv" | "-pV"));
    if args.first().is_some_and(asks) {
        return Ok(Others::default());
    }
    plain(args, &Spec { flags: "p", ..Spec::default() }, 0)
}

fn privileged(args: &[Word], spec: &Spec<'_>) -> Found {
    let rest = operands(args, spec)?;
    let count = rest.iter().take_while(|word| assigned(word).is_some()).count();
    let sets = rest.iter().take(count).filter_map(assigned).map(str::to_owned).collect();
    let rest = rest.get(count..).unwrap_or_default();
    if rest.is_empty() {
        return Err("it runs nothing that is named".into());
    }
    Ok(Others { itself: true, commands: vec![rest.to_vec()], sets, ..Others::default() })
}

fn xargs(args: &[Word]) -> Found {
    let spec = Spec {
        flags: "0rtpxo",
        valued: "dEILnPs",
        long: &["null", "no-run-if-empty", "verbose", "exit", "open-tty"],
        long_valued: &["delimiter", "max-args", "max-lines", "max-procs", "max-chars", "replace"],
    };
    let rest = operands(args, &spec)?;
    let options = args.get(..args.len() - rest.len()).unwrap_or_default();
    // Whatever stands for the input: `-I R`, `-IR`, `--replace=R`, and `{}` in any case.
    let mut marks = vec!["{}".to_owned()];
    for (at, option) in options.iter().filter_map(Word::fixed).enumerate() {
        match option {
            "-I" => marks.extend(options.get(at + 1).and_then(Word::fixed).map(str::to_owned)),
            _ => marks.extend(
                option
                    .strip_prefix("--replace=")
                    .or_else(|| option.split_once('I').map(|(_, mark)| mark))
                    .map(str::to_owned),
            ),
        }
    }
    marks.retain(|mark| !mark.is_empty());
    let mut command: Vec<Word> = rest.iter().map(|word| filled(word, &marks)).collect();
    if command.is_empty() {
        command.push(Word::Fixed("echo".into()));
    }
    command.push(Word::Open { prefix: String::new(), is_split: true });
    Ok(Others { commands: vec![command], ..Others::default() })
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
                let mut command = Vec::new();
                let mark = ["{}".to_owned()];
                loop {
                    let word = words.next().ok_or("a command of `find` is never closed")?;
                    let is_last = word.fixed() == Some(";")
                        || (word.fixed() == Some("+")
                            && command.last().is_some_and(|last: &Word| last.fixed().is_none()));
                    if is_last {
                        break;
                    }
                    command.push(filled(word, &mark));
                }
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

fn watch(args: &[Word]) -> Found {
    let long =
        &["beep", "color", "differences", "errexit", "chgexit", "no-title", "no-wrap", "precise", "exec"];
    let spec = Spec { flags: "bcdegtwpx", valued: "n", long, long_valued: &["interval"] };
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
    let rest = operands(args, &spec)?;
    let options = args.get(..args.len() - rest.len()).unwrap_or_default();
    let is_text =
        options.iter().filter_map(Word::fixed).any(|text| text.starts_with('-') && text.contains('c'));
    match rest.first().and_then(Word::fixed) {
        // A script, whose arguments are its own.
        _ if !is_text => Ok(Others { itself: true, ..Others::default() }),
        Some(text) => Ok(Others { texts: vec![text.to_owned()], ..Others::default() }),
        None => Err("what the shell is told to run is only known when it runs".into()),
    }
}

/// Builtins whose arguments are names of variables.
fn variables(name: &str, args: &[Word]) -> Found {
    careful(name, args)?;
    let mut sets = Vec::new();
    for word in args {
        match (assigned(word), word) {
            (Some(name), _) => sets.push(name.to_owned()),
            // Said again, or taken away: `export PATH` changes nothing, `unset PATH` and `read PATH` do.
            (None, Word::Fixed(text)) if !matches!(name, "export" | "readonly" | "local") => {
                sets.push(text.clone());
            }
            (None, Word::Fixed(text)) if text.starts_with("-f") => {
                return Err("functions cannot be judged".into());
            }
            (None, Word::Fixed(_)) => {}
            (None, Word::Open { .. }) => {
                return Err(format!("which variable `{name}` sets is only known when it runs"));
            }
        }
    }
    Ok(Others { itself: true, sets, ..Others::default() })
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
    if args.iter().any(is_odd) {
        return Err(format!("what `{name}` evaluates is only known when it runs"));
    }
    if name == "printf" && args.first().is_some_and(|first| first.fixed().is_none() && first.may_be_option())
    {
        return Err("what `printf` sets is only known when it runs".into());
    }
    Ok(Others { itself: true, ..Others::default() })
}
