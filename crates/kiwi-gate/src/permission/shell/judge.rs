//! What a command really runs: wrappers are looked through, and what cannot be looked through is refused.

use super::parse::{is_name, parse};
use super::program::{Command, Setting};
use super::syntax::{Script, Simple, Word};
use super::variables::is_dangerous;
use super::wrapper::{self, Others, Runs};
use crate::permission::kind::Kind;
use crate::permission::need::Need;

/// Deeper wrapping is nobody's command.
const DEEPEST: usize = 16;

/// What a shell would do with a command line.
pub(crate) fn needs_of_text(text: &str, setting: &Setting<'_>) -> Vec<Need> {
    let mut judgement = Judgement { setting, shown: text, needs: Vec::new(), depth: 0, has_moved: false };
    judgement.text(text);
    judgement.needs
}

/// What a program does that is started with these words.
pub(crate) fn needs_of_words(words: &[String], setting: &Setting<'_>) -> Vec<Need> {
    let shown = words.join(" ");
    let mut judgement = Judgement { setting, shown: &shown, needs: Vec::new(), depth: 0, has_moved: false };
    let words: Vec<Word> = words.iter().cloned().map(Word::Fixed).collect();
    judgement.words(&words);
    judgement.needs
}

struct Judgement<'a> {
    setting: &'a Setting<'a>,
    shown: &'a str,
    needs: Vec<Need>,
    depth: usize,
    /// Whether the command may have changed where it stands; then relative names mean something else.
    has_moved: bool,
}

/// Words that, wherever they stand, may be a change of folder.
const MOVES: [&str; 4] = ["cd", "chdir", "pushd", "popd"];

impl Judgement<'_> {
    fn opaque(&mut self, why: impl Into<String>) {
        self.needs.push(Need::opaque(Kind::ShellCommands, self.shown, why));
    }

    fn text(&mut self, text: &str) {
        match parse(text) {
            Ok(script) => self.script(&script),
            Err(why) => self.opaque(why),
        }
    }

    fn script(&mut self, script: &Script) {
        self.depth += 1;
        if self.depth > DEEPEST {
            self.opaque("it is wrapped too deeply");
            return;
        }
        // Before anything is judged: in a loop what comes later has happened too.
        let words = script.commands.iter().flat_map(|command| &command.words);
        self.has_moved |= words.filter_map(Word::fixed).any(|word| MOVES.contains(&word));
        for name in &script.sets {
            self.sets(name);
        }
        for Simple { assignments, words } in &script.commands {
            for name in assignments {
                self.sets(name);
            }
            if !words.is_empty() {
                self.words(words);
            }
        }
        for (kind, paths) in [(Kind::FilesystemRead, &script.reads), (Kind::FilesystemWrite, &script.writes)]
        {
            for path in paths {
                self.path(kind, path);
            }
        }
        self.depth -= 1;
    }

    fn path(&mut self, kind: Kind, path: &str) {
        if self.has_moved && !path.starts_with('/') {
            self.opaque(format!("where `{path}` lies depends on a change of folder"));
        } else {
            self.needs.push(Need::path(kind, path, self.setting.cwd));
        }
    }

    fn sets(&mut self, name: &str) {
        if is_dangerous(name) {
            let why = format!("setting `{name}` changes what runs");
            self.needs.push(Need::forbidden(self.shown, why));
        }
    }

    fn words(&mut self, words: &[Word]) {
        self.depth += 1;
        if self.depth > DEEPEST {
            self.opaque("it is wrapped too deeply");
        } else {
            self.command(words);
        }
        self.depth -= 1;
    }

    fn command(&mut self, words: &[Word]) {
        let Some((Word::Fixed(written), args)) = words.split_first() else {
            self.opaque("which program runs is only known when it runs");
            return;
        };
        if written.is_empty() {
            self.opaque("the program has no name");
            return;
        }
        if self.has_moved && written.contains('/') && !written.starts_with('/') {
            self.opaque(format!("where `{written}` lies depends on a change of folder"));
            return;
        }
        let command = Command::find(written, args.to_vec(), self.setting);
        // By the name it was called, and by the one it has behind links.
        let mut known = command.roles().map(|name| wrapper::of(name, args)).collect::<Vec<_>>();
        known.dedup();
        let mut is_itself = false;
        for runs in known {
            match runs {
                Runs::Itself => is_itself = true,
                Runs::Cannot(why) => {
                    self.opaque(why);
                    return;
                }
                Runs::Other(Others { itself, commands, texts, reads, writes, sets, moves }) => {
                    is_itself |= itself;
                    self.has_moved |= moves;
                    for name in &sets {
                        self.sets(name);
                    }
                    for words in &commands {
                        self.words(words);
                    }
                    for text in &texts {
                        self.text(text);
                    }
                    for path in &reads {
                        self.path(Kind::FilesystemRead, path);
                    }
                    for path in &writes {
                        self.path(Kind::FilesystemWrite, path);
                    }
                    if !itself {
                        return;
                    }
                }
            }
        }
        if is_itself {
            self.needs.push(Need::program(command));
        }
    }
}

/// The name in `NAME=value`, if that is what a word is.
pub(super) fn assigned(word: &Word) -> Option<&str> {
    let (Word::Fixed(text) | Word::Open { prefix: text, .. }) = word;
    text.split_once('=').map(|(name, _)| name).filter(|name| is_name(name))
}
