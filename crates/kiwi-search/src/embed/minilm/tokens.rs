//! A text as the tokens of BERT's lower-case models: cleaned, cut at spaces and punctuation, then into known pieces.

use kiwi_model::Hasher;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use unicode_normalization::char::decompose_canonical;

use super::characters::{is_accent, is_ideograph, is_punctuation, is_unseen};
use super::config::Config;
use super::{Refusal, file, optional};

/// Longer words are unknown without a look.
const MAX_WORD: usize = 100;

/// The vocabulary of a model.
#[derive(Debug)]
pub(super) struct Tokenizer {
    words: HashMap<String, u32>,
    start: u32,
    end: u32,
    unknown: u32,
    /// The most characters that a word of the vocabulary has.
    longest: usize,
    /// Of a text, without start and end.
    room: usize,
}

/// `tokenizer.json`, as far as it matters here.
#[derive(Deserialize)]
struct Described {
    model: DescribedModel,
}

#[derive(Deserialize)]
struct DescribedModel {
    vocab: HashMap<String, u32>,
}

impl Tokenizer {
    pub(super) fn read(folder: &Path, config: &Config) -> Result<Self, Refusal> {
        const PLAIN: &str = "vocab.txt";
        const DESCRIBED: &str = "tokenizer.json";
        let (name, words) = if let Some(bytes) = optional(folder, PLAIN)? {
            let text = String::from_utf8(bytes).map_err(|error| Refusal::of(PLAIN, error))?;
            (
                PLAIN,
                text.split_terminator('\n')
                    .map(|line| line.trim_end_matches('\r').to_owned())
                    .zip(0..)
                    .collect(),
            )
        } else if let Ok(bytes) = file(folder, DESCRIBED) {
            let described: Described =
                serde_json::from_slice(&bytes).map_err(|error| Refusal::of(DESCRIBED, error))?;
            (DESCRIBED, described.model.vocab)
        } else {
            return Err(Refusal(format!("there is neither `{PLAIN}` nor `{DESCRIBED}`")));
        };
        Self::new(words, config).map_err(|why| Refusal::of(name, why))
    }

    fn new(words: HashMap<String, u32>, config: &Config) -> Result<Self, String> {
        let row = |word: &str| words.get(word).copied().ok_or_else(|| format!("there is no word `{word}`"));
        let (start, end, unknown) = (row("[CLS]")?, row("[SEP]")?, row("[UNK]")?);
        let last = words.values().max().copied().unwrap_or_default();
        if usize::try_from(last).map_or(true, |last| last >= config.words) {
            return Err(format!("word {last} has no row: `config.json` wants {} words", config.words));
        }
        let longest = words.keys().map(|word| word.chars().count()).max().unwrap_or_default();
        Ok(Self { words, start, end, unknown, longest, room: config.max_tokens.saturating_sub(2) })
    }

    /// Adds what tokens depend on.
    pub(super) fn digest(&self, hasher: &mut Hasher) {
        let mut words: Vec<(&u32, &String)> = self.words.iter().map(|(word, row)| (row, word)).collect();
        words.sort_unstable();
        for (row, word) in words {
            hasher.update(&row.to_le_bytes());
            hasher.update(word.as_bytes());
            hasher.update(b"\n");
        }
    }

    /// The tokens of a text, start and end included. Words such as `[SEP]` in it are text like any other: what somebody
    /// else wrote does not get to speak to the model.
    pub(super) fn tokens(&self, text: &str) -> Vec<u32> {
        let mut tokens = vec![self.start];
        let mut word = Word::default();
        for character in text.chars() {
            if tokens.len() > self.room {
                break;
            }
            self.character(character, &mut word, &mut tokens);
        }
        self.finish(&mut word, &mut tokens);
        tokens.truncate(self.room + 1);
        tokens.push(self.end);
        tokens
    }

    fn character(&self, character: char, word: &mut Word, tokens: &mut Vec<u32>) {
        // Of the control characters, only these three are spaces; all others are as if they were not there.
        if !matches!(character, '\t' | '\n' | '\r') && (character == '\u{fffd}' || is_unseen(character)) {
            return;
        }
        if character.is_whitespace() {
            return self.finish(word, tokens);
        }
        let stands_alone = is_ideograph(character);
        if stands_alone {
            self.finish(word, tokens);
        }
        decompose_canonical(character, |piece| {
            if is_accent(piece) {
                return;
            }
            for lower in piece.to_lowercase() {
                if is_punctuation(lower) {
                    self.finish(word, tokens);
                    word.push(lower);
                    self.finish(word, tokens);
                } else {
                    word.push(lower);
                }
            }
        });
        if stands_alone {
            self.finish(word, tokens);
        }
    }

    /// The pieces of a word: the longest ones from the left, or one unknown if they do not add up.
    fn finish(&self, word: &mut Word, tokens: &mut Vec<u32>) {
        let length = std::mem::take(&mut word.length);
        if length == 0 {
            return;
        }
        if length > MAX_WORD {
            tokens.push(self.unknown);
        } else {
            let before = tokens.len();
            if self.pieces(&word.text, tokens).is_none() {
                tokens.truncate(before);
                tokens.push(self.unknown);
            }
        }
        word.text.clear();
    }

    fn pieces(&self, word: &str, tokens: &mut Vec<u32>) -> Option<()> {
        let mut rest = word;
        let mut candidate = String::with_capacity(word.len() + 2);
        while !rest.is_empty() {
            candidate.clear();
            if rest.len() < word.len() {
                candidate.push_str("##");
            }
            let mark = candidate.len();
            candidate.extend(rest.chars().take(self.longest));
            let token = loop {
                if let Some(token) = self.words.get(&candidate) {
                    break *token;
                }
                candidate.pop();
                if candidate.len() <= mark {
                    return None;
                }
            };
            tokens.push(token);
            rest = rest.get(candidate.len() - mark..)?;
        }
        Some(())
    }
}

/// A word that is being read. Of one that is too long, only the length goes on growing.
#[derive(Default)]
struct Word {
    text: String,
    length: usize,
}

impl Word {
    fn push(&mut self, character: char) {
        if self.length < MAX_WORD {
            self.text.push(character);
        }
        self.length += 1;
    }
}
