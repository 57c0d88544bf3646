//! Held against the vectors that came with the table, and against a second reading of its rules.

use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use super::{Embedder, StaticEmbedder};

fn model(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tool-embed").join(name)).unwrap()
}

fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt()
}

/// The rules of the README in their plainest form: whole strings, a hash map, no limits but those it names.
struct Plain {
    rows: HashMap<String, u16>,
    table: Vec<u8>,
}

impl Plain {
    fn new() -> Self {
        let text = String::from_utf8(model("vocab.txt")).unwrap();
        let rows = text.lines().zip(0..).map(|(word, row)| (word.to_owned(), row)).collect();
        Self { rows, table: model("table.bin") }
    }

    fn tokens(&self, text: &str) -> Vec<u16> {
        let text: String = if text.is_ascii() {
            text.to_owned()
        } else {
            text.nfkd().filter(|character| canonical_combining_class(*character) == 0).collect()
        };
        let mut tokens = Vec::new();
        for run in text.split(|character: char| !character.is_ascii_alphanumeric()) {
            match self.rows.get(&run.to_ascii_lowercase()) {
                _ if run.is_empty() => {}
                Some(row) => tokens.push(*row),
                None => camel(run).iter().for_each(|part| tokens.extend(self.pieces(part))),
            }
        }
        tokens.truncate(512);
        tokens
    }

    fn pieces(&self, part: &str) -> Vec<u16> {
        let part = part.to_ascii_lowercase();
        if let Some(row) = self.rows.get(&part) {
            return vec![*row];
        }
        let (mut tokens, mut from) = (Vec::new(), 0);
        if part.len() > 40 {
            return tokens;
        }
        while from < part.len() {
            let mark = if from == 0 { "" } else { "##" };
            let row = |to: usize| self.rows.get(&format!("{mark}{}", part.get(from..to)?));
            let found = (from + 1..=part.len()).rev().find_map(|to| Some((row(to)?, to)));
            let Some((row, to)) = found else { return Vec::new() };
            tokens.push(*row);
            from = to;
        }
        tokens
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0_f32; 256];
        for row in self.tokens(text) {
            let row = usize::from(row);
            let scale = f32::from_le_bytes(self.table[32 + 4 * row..36 + 4 * row].try_into().unwrap());
            let start = 32 + 4 * 37_000 + 256 * row;
            for (total, byte) in sum.iter_mut().zip(&self.table[start..start + 256]) {
                *total += scale * f32::from(byte.cast_signed());
            }
        }
        let length = sum.iter().map(|number| number * number).sum::<f32>().sqrt();
        sum.iter().map(|number| if length > 0.0 { number / length } else { 0.0 }).collect()
    }
}

/// Step 3, with its three cases in its order.
fn camel(run: &str) -> Vec<&str> {
    let bytes = run.as_bytes();
    let count = |from: usize, is: fn(&u8) -> bool| bytes[from..].iter().take_while(|byte| is(byte)).count();
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let capitals = count(at, u8::is_ascii_uppercase);
        let after = bytes.get(at + capitals);
        let size = if capitals >= 2 && after.is_some_and(u8::is_ascii_lowercase) {
            capitals - 1
        } else if capitals <= 1 {
            capitals + count(at + capitals, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        } else {
            capitals + count(at + capitals, u8::is_ascii_digit)
        };
        parts.extend(run.get(at..at + size));
        at += size;
    }
    parts
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).unwrap()).unwrap()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }

    fn code_point(&mut self, below: usize) -> char {
        char::from_u32(u32::try_from(self.roll(below)).unwrap()).unwrap_or('\u{fffd}')
    }
}

#[test]
fn the_texts_that_came_with_the_table() {
    let file: Value = serde_json::from_slice(&model("vectors.json")).unwrap();
    let items = file["items"].as_array().unwrap();
    assert_eq!(items.len(), 100);
    let embedder = StaticEmbedder::new();
    for item in items {
        let text = item["text"].as_str().unwrap();
        let tokens: Vec<u16> = serde_json::from_value(item["ids"].clone()).unwrap();
        assert_eq!(embedder.tokens(text), tokens, "{text}");
        let vector = embedder.vector(text);
        let wanted: Vec<f32> = serde_json::from_value(item["vec"].clone()).unwrap();
        assert_eq!((vector.len(), wanted.len()), (256, 16));
        for (number, wanted) in vector.iter().zip(&wanted) {
            assert!((number - wanted).abs() <= 1e-5, "{text}: {number} is not {wanted}");
        }
        let wanted = if tokens.is_empty() { 0.0 } else { 1.0 };
        assert!((length(&vector) - wanted).abs() < 1e-5, "{text}: {}", length(&vector));
    }
}

#[test]
fn a_text_without_known_words_has_the_zero_vector() {
    let embedder = StaticEmbedder::new();
    for text in ["", "日本語", "!!!", "\u{301}\u{302}", "🦀🎉", "\0\u{7f}"] {
        assert_eq!(embedder.tokens(text), [0_u16; 0], "{text:?}");
        assert!(embedder.vector(text).iter().all(|number| *number == 0.0), "{text:?}");
    }
}

#[test]
fn thousands_of_texts_of_every_kind_as_the_plain_rules_say() {
    const WORDS: [&str; 40] = [
        "send",
        "email",
        "GitHub",
        "HTTPServer",
        "EC2Instances",
        "S3Bucket",
        "getUserByID",
        "XMLHttpRequest",
        "ﬁle",
        "ﬃx",
        "ＡＢＣ",
        "ｆｕｌｌ１２",
        "ıstanbul",
        "İstanbul",
        "ſtraße",
        "café",
        "cafe\u{301}",
        "e\u{301}\u{327}",
        "½",
        "①②",
        "℡",
        "㎏",
        "Ǆ",
        "Å",
        "ﷺ",
        "한국어",
        "日本語",
        "🦀",
        "👩‍👩‍👧",
        "\u{1d400}\u{1d41a}",
        "x\u{200d}y",
        "ß",
        "qwzxkj",
        "00ff00deadbeef",
        "aA1bB2",
        "ABCd",
        "A",
        "z",
        "naïveté",
        "Ωmega",
    ];
    const BETWEEN: [&str; 10] = ["", "", " ", "_", "-", "/", "\u{301}", "\u{a0}", "。", "\n\t"];
    let (embedder, plain, mut dice) = (StaticEmbedder::new(), Plain::new(), Dice(0x5eed));
    let vocabulary: Vec<String> = plain.rows.keys().map(|word| word.replace("##", "")).collect();
    let (mut with_tokens, mut full) = (0, 0);
    for round in 0..12_000 {
        let mut text = String::new();
        let count = if round % 500 == 0 { 700 } else { dice.roll(12) };
        for _ in 0..count {
            match dice.roll(8) {
                0 => text.push(dice.code_point(0x11_0000)),
                1 => text.push(dice.code_point(0x1_0000)),
                2 => text.push(dice.code_point(0x250)),
                3 => (0..dice.roll(60)).for_each(|_| text.push(dice.code_point(0x80))),
                4 => {
                    let letters = ["a", "B", "c", "D", "7", "Q", "é", "É", "z"];
                    (0..dice.roll(60)).for_each(|_| text.push_str(dice.pick(&letters)));
                }
                5 => {
                    let word = &vocabulary[dice.roll(vocabulary.len())];
                    text.push_str(&if dice.roll(3) == 0 { word.to_uppercase() } else { word.clone() });
                }
                _ => text.push_str(dice.pick(&WORDS)),
            }
            text.push_str(dice.pick(&BETWEEN));
        }
        let tokens = embedder.tokens(&text);
        assert_eq!(tokens, plain.tokens(&text), "{text:?}");
        with_tokens += usize::from(!tokens.is_empty());
        full += usize::from(tokens.len() == 512);
        for (one, other) in embedder.vector(&text).iter().zip(plain.vector(&text)) {
            assert!((one - other).abs() <= 1e-6, "{text:?}: {one} and {other}");
        }
    }
    assert!(with_tokens > 9_000 && full > 10, "{with_tokens} with tokens, {full} full");
}

#[test]
fn every_character_there_is_as_the_plain_rules_say() {
    let (embedder, plain) = (StaticEmbedder::new(), Plain::new());
    for block in (0..0x11_0000_u32).collect::<Vec<_>>().chunks(16) {
        // Between letters, so that one that is dropped is told from one that separates.
        let text: String = block
            .iter()
            .filter_map(|code| char::from_u32(*code))
            .flat_map(|letter| ['q', letter, 'x'])
            .collect();
        assert_eq!(embedder.tokens(&text), plain.tokens(&text), "{text:?}");
    }
}

#[test]
fn each_word_of_the_vocabulary_has_its_row() {
    let (embedder, plain) = (StaticEmbedder::new(), Plain::new());
    for (word, row) in &plain.rows {
        if !word.starts_with("##") {
            assert_eq!(embedder.tokens(word), [*row], "{word}");
            assert_eq!(embedder.tokens(&word.to_uppercase()), [*row], "{word}");
        }
    }
}

#[test]
fn what_comes_after_the_last_token_is_not_read() {
    let embedder = StaticEmbedder::new();
    for unit in ["send an email, ", "GitHubHTTPServer", "ＡｂＣｄ", "é ", "Ab"] {
        let text = unit.repeat((100 << 20) / unit.len());
        let short = unit.repeat(600);
        let start = std::time::Instant::now();
        assert_eq!(embedder.tokens(&text), embedder.tokens(&short));
        assert_eq!(embedder.tokens(&text).len(), 512);
        let took = start.elapsed();
        assert!(took.as_millis() < 200, "`{unit}` took {took:?}");
    }
}

#[test]
fn endless_words_are_held_in_a_few_bytes_and_give_nothing() {
    let embedder = StaticEmbedder::new();
    for unit in ["a", "A", "1", "é", "\u{301}", "語", "Q1", "-"] {
        let text = unit.repeat(3 << 20);
        let tokens = embedder.tokens(&text);
        assert_eq!(tokens.len(), if unit == "Q1" { 512 } else { 0 }, "{unit}");
    }
}

#[test]
fn the_id_names_size_version_and_content() {
    let embedder = StaticEmbedder::new();
    let hash = embedder.id().strip_prefix("static-37000x256-v1-").unwrap();
    assert!(hash.len() == 8 && u32::from_str_radix(hash, 16).is_ok(), "{hash}");
    assert_eq!(embedder.dimensions(), 256);
    let vectors = embedder.embed(&["list files", "", "list files"]).unwrap();
    assert_eq!(vectors.len(), 3);
    assert!(vectors[0] == vectors[2] && vectors[0] != vectors[1]);
}
