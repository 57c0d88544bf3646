//! Lists, compound commands and redirections of the POSIX shell.
//!
//! Every command of a line is collected, whichever branch it stands in: each of them may run. Whether a line is
//! complete is left to the shell, which refuses what is not; what it would understand is understood here the same way.

use super::syntax::{Script, Simple, Word};

/// Deeper nesting is nobody's command.
const DEEPEST: usize = 32;

/// What ends a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Text,
    /// The `)` of a subshell.
    Subshell,
    /// The `)` of a substitution.
    Substitution,
    /// `;;` or `esac`.
    Branch,
}

/// A here-document whose text is still to come.
struct Document {
    delimiter: String,
    is_literal: bool,
    strips_tabs: bool,
}

pub(super) struct Parser {
    chars: Vec<char>,
    at: usize,
    /// Where the last word began.
    pub word_at: usize,
    depth: usize,
    documents: Vec<Document>,
    pub script: Script,
}

/// Reads a command line.
pub(crate) fn parse(text: &str) -> Result<Script, String> {
    let mut parser = Parser::new(text, 0)?;
    parser.list(End::Text)?;
    Ok(parser.script)
}

/// Keywords behind which a command begins, or nothing.
const TRANSPARENT: [&str; 12] =
    ["!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done"];
const REFUSED: [&str; 4] = ["[[", "function", "select", "coproc"];

impl Parser {
    fn new(text: &str, depth: usize) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("it holds a NUL character".into());
        }
        if depth > DEEPEST {
            return Err("it is nested too deeply".into());
        }
        Ok(Self {
            chars: text.chars().collect(),
            at: 0,
            word_at: 0,
            depth,
            documents: Vec::new(),
            script: Script::default(),
        })
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at.checked_add(ahead)?).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn take(&mut self, text: &str) -> bool {
        let is_there = text.chars().enumerate().all(|(ahead, c)| self.peek_at(ahead) == Some(c));
        if is_there {
            self.at += text.chars().count();
        }
        is_there
    }

    /// A list inside this one, up to and with what ends it.
    pub(super) fn nested(&mut self, end: End) -> Result<(), String> {
        if self.depth >= DEEPEST {
            return Err("it is nested too deeply".into());
        }
        // Shells do not agree on whose the next line is.
        let shares_line = |parser: &Self| end == End::Substitution && !parser.documents.is_empty();
        if shares_line(self) {
            return Err("a here-document and an expansion share a line".into());
        }
        self.depth += 1;
        self.list(end)?;
        self.depth -= 1;
        if shares_line(self) { Err("a here-document is never closed".into()) } else { Ok(()) }
    }

    /// Where the parser stands.
    pub(super) fn here(&self) -> usize {
        self.at
    }

    /// A text of its own that is a list.
    pub(super) fn apart(&mut self, text: &str) -> Result<(), String> {
        let mut inner = Self::new(text, self.depth + 1)?;
        std::mem::swap(&mut inner.script, &mut self.script);
        let done = inner.list(End::Text);
        std::mem::swap(&mut inner.script, &mut self.script);
        done
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) || self.take("\\\n") {
            if matches!(self.peek(), Some(' ' | '\t')) {
                self.next();
            }
        }
    }

    fn comment(&mut self) {
        if self.peek() == Some('#') {
            while self.peek().is_some_and(|c| c != '\n') {
                self.next();
            }
        }
    }

    /// Blanks, comments and ends of lines.
    fn space(&mut self) -> Result<(), String> {
        loop {
            self.blanks();
            self.comment();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.next();
            self.read_documents()?;
        }
    }

    fn list(&mut self, end: End) -> Result<(), String> {
        loop {
            self.space()?;
            match self.peek() {
                None if end == End::Text && self.documents.is_empty() => return Ok(()),
                None if end == End::Text => return Err("a here-document is never closed".into()),
                None => return Err("a parenthesis or `case` is never closed".into()),
                Some(')') if matches!(end, End::Subshell | End::Substitution) => {
                    self.next();
                    return Ok(());
                }
                Some(';') if end == End::Branch && self.take(";;") => {
                    return if matches!(self.peek(), Some('&')) { Err(differs(";;&")) } else { Ok(()) };
                }
                Some(';') if self.peek_at(1) == Some('&') => return Err(differs(";&")),
                Some(';' | '&' | '|') => self.operator()?,
                Some(_) => {
                    if self.command(end)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn operator(&mut self) -> Result<(), String> {
        for odd in ["&>", "|&", ";;"] {
            if self.take(odd) {
                return Err(differs(odd));
            }
        }
        let _ = self.take("&&") || self.take("||") || self.next().is_some();
        Ok(())
    }

    /// One command. Whether it was the `esac` that ends a branch.
    fn command(&mut self, end: End) -> Result<bool, String> {
        if self.take("((") {
            return Err(differs("(("));
        }
        if self.take("(") {
            self.nested(End::Subshell)?;
            self.rest_of(&mut Simple::default())?;
            return Ok(false);
        }
        if matches!(self.peek(), Some(')')) {
            return Err("a `)` closes nothing".into());
        }
        if matches!(self.peek(), Some('<' | '>')) {
            return self.simple(Simple::default()).map(|()| false);
        }
        let draft = self.word()?;
        match draft.bare() {
            Some("esac") if end == End::Branch => return Ok(true),
            Some("for") => return self.each().map(|()| false),
            Some("case") => return self.case().map(|()| false),
            Some(word) if TRANSPARENT.contains(&word) => return Ok(false),
            Some(word) if REFUSED.contains(&word) => return Err(differs(word)),
            _ => {}
        }
        let mut simple = Simple::default();
        self.add(&mut simple, draft)?;
        self.simple(simple)?;
        Ok(false)
    }

    /// `for NAME [in WORD…]`; what comes behind it is read as what it is.
    fn each(&mut self) -> Result<(), String> {
        self.blanks();
        let name = self.word()?.bare().map(str::to_owned);
        let name = name.filter(|name| is_name(name)).ok_or("a loop in it names no variable")?;
        self.script.sets.push(name);
        self.space()?;
        let before = self.at;
        if self.word()?.bare() == Some("in") {
            loop {
                self.blanks();
                self.comment();
                let before = self.at;
                self.word()?;
                if self.at == before {
                    return Ok(());
                }
            }
        }
        self.at = before;
        Ok(())
    }

    fn case(&mut self) -> Result<(), String> {
        self.blanks();
        self.word()?;
        self.space()?;
        if self.word()?.bare() != Some("in") {
            return Err("a `case` in it has no `in`".into());
        }
        loop {
            self.space()?;
            self.take("(");
            self.blanks();
            if self.word()?.bare() == Some("esac") {
                return self.rest_of(&mut Simple::default());
            }
            self.blanks();
            while self.take("|") {
                self.blanks();
                self.word()?;
                self.blanks();
            }
            if !self.take(")") {
                return Err("a branch of a `case` in it cannot be read".into());
            }
            let from = self.at;
            self.nested(End::Branch)?;
            // Ended by `esac` rather than by `;;`.
            let ended: String = self.chars.get(from..self.at).unwrap_or_default().iter().collect();
            if !ended.ends_with(";;") {
                return self.rest_of(&mut Simple::default());
            }
        }
    }

    /// The rest of a simple command.
    fn simple(&mut self, mut simple: Simple) -> Result<(), String> {
        self.rest_of(&mut simple)?;
        if simple != Simple::default() {
            self.script.commands.push(simple);
        }
        Ok(())
    }

    /// Words and redirections up to the end of the command.
    fn rest_of(&mut self, simple: &mut Simple) -> Result<(), String> {
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => return Ok(()),
                Some('#') => self.comment(),
                Some('(') => return Err("functions cannot be judged".into()),
                Some('<' | '>') => self.redirection(simple)?,
                Some(_) => {
                    let draft = self.word()?;
                    self.add(simple, draft)?;
                }
            }
        }
    }

    fn add(&mut self, simple: &mut Simple, draft: super::scan::Draft) -> Result<(), String> {
        let is_number = draft.bare().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        if draft.is_empty() || (is_number && matches!(self.peek(), Some('<' | '>'))) {
            // The number of a descriptor belongs to the redirection behind it.
            return Ok(());
        }
        if self.names_descriptor() {
            return Err(differs("{…}>"));
        }
        let is_quoted = draft.is_quoted;
        let word = draft.finish();
        let known = match &word {
            Word::Fixed(text) => text,
            Word::Open { prefix, .. } => prefix,
        };
        if simple.words.is_empty()
            && let Some((name, _)) = known.split_once('=')
        {
            let name = name.strip_suffix('+').unwrap_or(name);
            if is_name(name) && (!is_quoted || self.is_bare_name(name)) {
                simple.assignments.push(name.to_owned());
                return Ok(());
            }
            if is_quoted || name.contains('[') {
                return Err(format!("`{known}` may be an assignment or a program"));
            }
        }
        simple.words.push(word);
        Ok(())
    }

    /// Whether the word just read is a `{NAME}` in front of a redirection, which sets a variable.
    fn names_descriptor(&self) -> bool {
        let last = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        matches!(self.peek(), Some('<' | '>'))
            && self.chars.get(self.word_at) == Some(&'{')
            && last == Some(&'}')
    }

    /// Whether the word just read began with this name and `=`, both outside of quotes.
    fn is_bare_name(&self, name: &str) -> bool {
        let wanted: Vec<char> = name.chars().chain(['=']).collect();
        let begin = self.word_at;
        self.chars.get(begin..begin + wanted.len()) == Some(&wanted)
    }

    fn redirection(&mut self, simple: &mut Simple) -> Result<(), String> {
        if self.take("<(") || self.take(">(") {
            self.nested(End::Substitution)?;
            simple.words.push(Word::Open { prefix: "/dev/fd/".into(), is_split: false });
            return Ok(());
        }
        let operators = ["<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];
        let operator = operators.into_iter().find(|operator| self.take(operator)).unwrap_or(">");
        self.blanks();
        if matches!(self.peek(), Some('(' | '<' | '>')) {
            return Err("a redirection leads nowhere".into());
        }
        let draft = self.word()?;
        if draft.is_empty() {
            return Err("a redirection leads nowhere".into());
        }
        let is_literal = draft.is_quoted;
        let word = draft.finish();
        match (operator, word) {
            // Text, whoever reads it; what expands in it has been seen.
            ("<<<", _) => Ok(()),
            ("<<" | "<<-", Word::Fixed(delimiter)) => {
                let strips_tabs = operator == "<<-";
                self.documents.push(Document { delimiter, is_literal, strips_tabs });
                Ok(())
            }
            ("<&" | ">&", Word::Fixed(text))
                if text == "-" || text.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                Ok(())
            }
            ("<&" | ">&", _) => Err(differs(operator)),
            (_, Word::Fixed(path)) => self.opens(operator, path),
            (_, Word::Open { .. }) => Err("where a redirection leads is only known when it runs".into()),
        }
    }

    fn opens(&mut self, operator: &str, path: String) -> Result<(), String> {
        if ["/dev/tcp", "/dev/udp"].iter().any(|net| path.starts_with(net)) {
            return Err(differs(&path));
        }
        let is_own = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"].contains(&path.as_str());
        if is_own {
            return Ok(());
        }
        if matches!(operator, "<" | "<>") {
            self.script.reads.push(path.clone());
        }
        if operator != "<" {
            self.script.writes.push(path);
        }
        Ok(())
    }

    /// The texts of here-documents that begin behind this line.
    fn read_documents(&mut self) -> Result<(), String> {
        for document in std::mem::take(&mut self.documents) {
            let mut body = String::new();
            loop {
                if self.peek().is_none() {
                    return Err("a here-document is never closed".into());
                }
                let mut line = String::new();
                while let Some(c) = self.next().filter(|c| *c != '\n') {
                    line.push(c);
                }
                let stripped = line.trim_start_matches('\t');
                if (if document.strips_tabs { stripped } else { line.as_str() }) == document.delimiter {
                    break;
                }
                body.push_str(&line);
                body.push('\n');
            }
            if document.is_literal {
                continue;
            }
            if body.contains("\\\n") {
                return Err("a line of a here-document goes on behind its end".into());
            }
            let mut inner = Self::new(&body, self.depth + 1)?;
            std::mem::swap(&mut inner.script, &mut self.script);
            let done = inner.document();
            std::mem::swap(&mut inner.script, &mut self.script);
            done?;
        }
        Ok(())
    }
}

/// Whether a shell would take this for the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn differs(what: &str) -> String {
    format!("`{what}` means different things to different shells")
}
