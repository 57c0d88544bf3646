//! A text as the words a reader sees, whatever is done to hide them.

/// The words of a text, lower case, without what stands around them.
pub(super) struct Words(pub(super) Vec<String>);

/// One place of a pattern.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// One of these words.
    Any(&'static [&'static str]),
    /// At most so many words of any kind.
    Gap(usize),
    /// A word of which this is true.
    Like(fn(&str) -> bool),
}

impl Words {
    /// Splits a text. Hidden characters inside a word do not break it, and letters that look like Latin ones are those.
    pub(super) fn of(text: &str) -> Self {
        let seen = text.chars().filter(|c| !super::hidden::is_hidden(*c)).map(latin);
        let seen: String = seen.collect();
        let words = seen.split(|c: char| {
            c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '"' | '`' | '<' | '>' | '|')
        });
        let trim = |word: &str| {
            let word = word.trim_matches(|c: char| {
                matches!(
                    c,
                    '.' | ':' | '!' | '?' | '\'' | '*' | '’' | '‘' | '“' | '”' | '[' | ']' | '{' | '}'
                )
            });
            word.replace('’', "'").to_lowercase()
        };
        // A name that starts with a dot (`.env`) is not the end of a sentence.
        let words = words.map(|word| {
            let dotted = word.starts_with('.') && word.len() > 1;
            if dotted { format!(".{}", trim(word)) } else { trim(word) }
        });
        Self(words.filter(|word| !word.is_empty()).collect())
    }

    /// The first place where a pattern fits, as the words it covers.
    pub(super) fn find(&self, pattern: &[Part]) -> Option<String> {
        let at = (0..self.0.len()).find_map(|start| Some((start, self.fits(start, pattern)?)));
        let (start, end) = at?;
        Some(self.0.get(start..end).unwrap_or_default().join(" "))
    }

    /// Behind the last word of a pattern that starts at a word. Gaps are short and few, so this is bounded.
    fn fits(&self, at: usize, pattern: &[Part]) -> Option<usize> {
        let Some((first, rest)) = pattern.split_first() else { return Some(at) };
        let word = || self.0.get(at).map(String::as_str);
        match first {
            Part::Any(words) => {
                word().filter(|word| words.contains(word)).and_then(|_| self.fits(at + 1, rest))
            }
            Part::Like(test) => word().filter(|word| test(word)).and_then(|_| self.fits(at + 1, rest)),
            Part::Gap(most) => (0..=*most).find_map(|skipped| self.fits(at + skipped, rest)),
        }
    }
}

/// Letters of other scripts that look like Latin ones, as those.
fn latin(c: char) -> char {
    match c {
        'а' | 'ɑ' | 'α' => 'a',
        'с' | 'ϲ' => 'c',
        'е' | 'ҽ' => 'e',
        'і' | 'ı' | 'ι' => 'i',
        'ј' => 'j',
        'о' | 'ο' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'ѕ' => 's',
        'у' | 'γ' => 'y',
        'х' | 'χ' => 'x',
        'ԁ' => 'd',
        'һ' => 'h',
        'ո' => 'n',
        'А' => 'A',
        'В' => 'B',
        'Е' => 'E',
        'І' => 'I',
        'О' => 'O',
        'Р' => 'P',
        'С' => 'C',
        'Т' => 'T',
        // Full-width forms.
        '\u{ff01}'..='\u{ff5e}' => u32::from(c).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(c),
        c => c,
    }
}
