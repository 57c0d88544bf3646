//! Texts as words: folded, split also inside names, without the words that say nothing, reduced to their stems.

use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, Stemmer, StopWordFilter, TextAnalyzer, Token, TokenStream,
    Tokenizer, TokenizerManager,
};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::stop_words::stop_words;

/// The name by which the schema knows it.
pub(super) const WORDS: &str = "kiwi.words";
const LONGEST: usize = 64;

/// Makes words of texts.
#[derive(Clone)]
pub(crate) struct Words(TextAnalyzer);

impl Words {
    pub fn new() -> Self {
        let analyzer = TextAnalyzer::builder(Splitter)
            .filter(RemoveLongFilter::limit(LONGEST))
            .filter(LowerCaser)
            .filter(StopWordFilter::remove(stop_words()))
            .filter(Stemmer::new(Language::English));
        Self(analyzer.build())
    }

    /// The words of a text, in order and with repeats.
    pub fn of(&mut self, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut stream = self.0.token_stream(text);
        while stream.advance() {
            words.push(stream.token().text.clone());
        }
        words
    }
}

/// Makes the words known to an index.
pub(crate) fn register(tokenizers: &TokenizerManager) {
    tokenizers.register(WORDS, Words::new().0);
}

/// Letters and digits alone, folded and small: what is left of a name when nobody minds how it is written.
pub(crate) fn flat(name: &str) -> String {
    fold(name).chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a text is one word, as far as its writing tells.
pub(crate) fn is_one_word(text: &str) -> bool {
    let text = fold(text.trim());
    !text.is_empty() && text.chars().all(char::is_alphanumeric)
}

/// The small words that a query names, in the ways that it can be read: `GitHub is` is `github`, `is` and `git`, `hub`, `is`.
pub(crate) fn readings(text: &str) -> Vec<Vec<String>> {
    let text = fold(text);
    let runs = || text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    let whole: Vec<String> = runs().map(str::to_lowercase).collect();
    let mut readings = vec![words_of_name(&text).map(|word| word.to_lowercase()).collect()];
    if !readings.contains(&whole) {
        readings.push(whole);
    }
    readings
}

/// The words of a name, none of which goes on into the next.
pub(crate) fn words_of_name(name: &str) -> impl Iterator<Item = String> + use<> {
    let mut words = Vec::new();
    for run in fold(name).split(|c: char| !c.is_alphanumeric()) {
        cut(run, &mut words);
    }
    words.into_iter()
}

/// The parts of a text, split at whatever is no letter or digit and where a name changes case. The whole of a name that was
/// split is a part too: `GitHub` is `Git`, `Hub` and `GitHub`.
pub(crate) fn split(text: &str) -> Vec<String> {
    let text = fold(text);
    let mut parts = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let before = parts.len();
        cut(run, &mut parts);
        if parts.len() > before + 1 && run.is_ascii() {
            parts.push(run.to_owned());
        }
    }
    parts
}

/// Without accents, ligatures and widths.
fn fold(text: &str) -> std::borrow::Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    text.nfkd().filter(|c| !is_combining_mark(*c)).collect::<String>().into()
}

/// Cuts a run where its case changes: `HTTPServer` is `HTTP` and `Server`. Scripts that put no space between words give a
/// part for each letter.
fn cut(run: &str, parts: &mut Vec<String>) {
    let mut part = String::new();
    let mut characters = run.chars().peekable();
    while let Some(c) = characters.next() {
        if is_unspaced(c) {
            flush(&mut part, parts);
            parts.push(c.to_string());
            continue;
        }
        let last = part.chars().next_back();
        let next_is_small = characters.peek().is_some_and(|next| next.is_lowercase());
        let begins = match last {
            Some(last) if c.is_uppercase() => !last.is_uppercase() || next_is_small,
            _ => false,
        };
        if begins {
            flush(&mut part, parts);
        }
        part.push(c);
    }
    flush(&mut part, parts);
}

fn flush(part: &mut String, parts: &mut Vec<String>) {
    if !part.is_empty() {
        parts.push(std::mem::take(part));
    }
}

fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c), 0x0E00..=0x0E7F | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x323AF)
}

/// The tokenizer of the text index. Offsets are not kept: nothing is highlighted by them.
#[derive(Clone, Default)]
struct Splitter;

struct Parts {
    parts: std::vec::IntoIter<String>,
    token: Token,
}

impl Tokenizer for Splitter {
    type TokenStream<'a> = Parts;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Parts {
        Parts { parts: split(text).into_iter(), token: Token::default() }
    }
}

impl TokenStream for Parts {
    fn advance(&mut self) -> bool {
        let Some(part) = self.parts.next() else { return false };
        self.token.position = self.token.position.wrapping_add(1);
        self.token.text = part;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_their_words() {
        for (text, parts) in [
            ("read_csv-file.now", vec!["read", "csv", "file", "now"]),
            ("HTTPServer", vec!["HTTP", "Server", "HTTPServer"]),
            ("createPullRequest", vec!["create", "Pull", "Request", "createPullRequest"]),
            ("S3Bucket", vec!["S3", "Bucket", "S3Bucket"]),
            ("GitHub", vec!["Git", "Hub", "GitHub"]),
            ("URL", vec!["URL"]),
            ("naïve ﬁle", vec!["naive", "file"]),
            ("天気 API", vec!["天", "気", "API"]),
            ("", vec![]),
            ("!?", vec![]),
        ] {
            assert_eq!(split(text), parts, "{text}");
        }
    }

    #[test]
    fn a_query_is_read_with_and_without_its_change_of_case() {
        let read = |text| readings(text).iter().map(|words| words.join(" ")).collect::<Vec<_>>();
        assert_eq!(read("create_i"), ["create i"]);
        assert_eq!(read("Files"), ["files"]);
        assert_eq!(read("createIssue.c"), ["create issue c", "createissue c"]);
        assert_eq!(read("天気"), ["天 気", "天気"]);
    }

    #[test]
    fn words_are_stems_without_those_that_say_nothing() {
        assert_eq!(Words::new().of("Reading the files of a Repository"), ["read", "file", "repositori"]);
        assert!(Words::new().of("of the and").is_empty());
    }

    #[test]
    fn a_flat_name_is_the_same_however_it_is_written() {
        for name in ["readCsv", "read_csv", "Read CSV", "read-csv", "READ.CSV"] {
            assert_eq!(flat(name), "readcsv");
        }
    }
}
