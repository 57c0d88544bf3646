//! Globs of `matches`: `*` and `?` stop at `/`, `**` does not, `**/` stands for any number of whole folders, `[a-z]`
//! and `[!a-z]` are one character. All states are followed at once, so no pattern makes matching slow.

/// The longest pattern, in parts.
pub(crate) const MAX_PARTS: usize = 256;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Glob {
    pattern: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Exactly(char),
    One,
    Within,
    Across,
    /// At the border of a folder; with the part behind it, which is inside a name, it is `**/`.
    Folders,
    Name,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl serde::Serialize for Glob {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.pattern)
    }
}

impl Glob {
    /// Reads a pattern, or says what is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, &'static str> {
        let mut parts = Vec::new();
        let mut rest = pattern.chars().peekable();
        let mut before = None;
        while let Some(c) = rest.next() {
            match c {
                '?' => parts.push(Part::One),
                '*' if rest.peek() != Some(&'*') => parts.push(Part::Within),
                '*' => {
                    while rest.next_if_eq(&'*').is_some() {}
                    if before.is_none_or(|c| c == '/') && rest.next_if_eq(&'/').is_some() {
                        parts.extend([Part::Folders, Part::Name]);
                        before = Some('/');
                        continue;
                    }
                    parts.push(Part::Across);
                }
                '[' => parts.push(class(&mut rest)?),
                '\\' => parts.push(Part::Exactly(rest.next().ok_or("it ends in a lone `\\`")?)),
                // Taken as text it would never match, and a rule that never fires is worse than an error.
                '{' | '}' => return Err("it has braces: join two `matches` with `or`, or write `\\{`"),
                _ => parts.push(Part::Exactly(c)),
            }
            before = Some(c);
        }
        if parts.len() > MAX_PARTS {
            return Err("it is too long");
        }
        Ok(Self { pattern: pattern.to_owned(), parts })
    }

    /// How many parts a text is held against at each character: the price of a match.
    pub fn weight(&self) -> usize {
        self.parts.len()
    }

    /// What every text that matches begins with, and whether that is all of it.
    pub fn prefix(&self) -> (String, bool) {
        let plain = |part: &Part| if let Part::Exactly(c) = part { Some(*c) } else { None };
        let prefix: String = self.parts.iter().map_while(plain).collect();
        (prefix, self.parts.iter().all(|part| plain(part).is_some()))
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        let mut now = vec![false; self.parts.len() + 1];
        let mut next = now.clone();
        if let Some(start) = now.first_mut() {
            *start = true;
        }
        self.slip(&mut now);
        for c in text.chars() {
            next.fill(false);
            for (at, part) in self.parts.iter().enumerate() {
                if now.get(at) == Some(&true)
                    && let Some(to) = part.step(at, c)
                    && let Some(state) = next.get_mut(to)
                {
                    *state = true;
                }
            }
            self.slip(&mut next);
            if !next.contains(&true) {
                return false;
            }
            std::mem::swap(&mut now, &mut next);
        }
        now.last() == Some(&true)
    }

    /// Goes on past the parts that may stand for nothing.
    fn slip(&self, states: &mut [bool]) {
        for (at, part) in self.parts.iter().enumerate() {
            let skip = match part {
                Part::Within | Part::Across => 1,
                Part::Folders => 2,
                _ => continue,
            };
            if states.get(at) == Some(&true)
                && let Some(state) = states.get_mut(at + skip)
            {
                *state = true;
            }
        }
    }
}

impl Part {
    /// Where a character leads from here.
    fn step(&self, at: usize, c: char) -> Option<usize> {
        match self {
            Self::Exactly(own) => (*own == c).then_some(at + 1),
            Self::One => (c != '/').then_some(at + 1),
            Self::Within => (c != '/').then_some(at),
            Self::Across => Some(at),
            Self::Folders => Some(if c == '/' { at } else { at + 1 }),
            Self::Name => Some(if c == '/' { at.saturating_sub(1) } else { at }),
            Self::Class { negated, ranges } => {
                let within = ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
                (c != '/' && within != *negated).then_some(at + 1)
            }
        }
    }
}

/// What follows a `[`.
fn class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Part, &'static str> {
    const OPEN: &str = "a `[` has no `]`";
    let negated = rest.next_if_eq(&'!').is_some();
    let mut ranges = Vec::new();
    loop {
        let mut low = rest.next().ok_or(OPEN)?;
        if low == ']' {
            break;
        }
        if low == '\\' {
            low = rest.next().ok_or(OPEN)?;
        }
        let high = match rest.next_if_eq(&'-') {
            Some(_) => rest.next().filter(|c| !matches!(c, ']' | '\\')).ok_or("a range has no end")?,
            None => low,
        };
        if high < low {
            return Err("a range runs backwards");
        }
        ranges.push((low, high));
    }
    if ranges.is_empty() { Err("a `[]` is empty") } else { Ok(Part::Class { negated, ranges }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let glob = Glob::new(pattern).expect("a pattern");
        for (text, expect) in yes.iter().map(|text| (text, true)).chain(no.iter().map(|text| (text, false))) {
            assert_eq!(glob.matches(text), expect, "`{pattern}` against `{text}`");
        }
    }

    #[test]
    fn what_each_sign_stands_for() {
        check("", &[""], &["a"]);
        check("filesystem.*", &["filesystem.read", "filesystem."], &["filesystem", "filesystem.a/b"]);
        check("src/*", &["src/a", "src/"], &["src/a/b", "src"]);
        check("src/**", &["src/a", "src/a/b", "src/"], &["src", "srcs/a"]);
        check("**/a", &["a", "x/a", "x/y/a", "/a"], &["ba", "x/ba", "a/"]);
        check("x/**/a", &["x/a", "x/y/a", "x/y/z/a"], &["xa", "x/ya"]);
        check("a**b", &["ab", "a/b", "axxb"], &["a", "b"]);
        check("?.[a-c]", &["x.a", "é.c"], &["x.d", "/.a", "x.", "xx.a"]);
        check("[!a]", &["b"], &["a", "/", ""]);
        check("\\*\\{", &["*{"], &["a{"]);
        check("*a*a*a*a*a*b", &["aaaaab"], &["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for pattern in ["[", "[]", "[z-a]", "[a-]", "\\", "*.{rs,toml}", &"a".repeat(MAX_PARTS + 1)] {
            assert!(Glob::new(pattern).is_err(), "{pattern}");
        }
    }
}
