//! Words, and which of them tell anything.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use unicode_normalization::UnicodeNormalization as _;

use super::Store;
use super::database::{Sql, values};
use crate::error::RegistryError;

/// Words of a question that count.
const MOST_ASKED: usize = 16;
/// A longer word is none.
const LONGEST_WORD: usize = 64;
/// Tools that are ranked by their words. Every one costs, and a word that more of them have tells them apart badly.
const MOST_RANKED: u64 = 1_000;
/// How long a count is good enough.
const FRESH: Duration = Duration::from_secs(30);
/// Counts that are kept.
const MOST_KEPT: usize = 10_000;

const COUNT: Sql = Sql::each(
    "SELECT doc FROM tool_vocabulary WHERE term = $1",
    "SELECT count(*) FROM (SELECT 1 FROM embeddings WHERE words @@ plainto_tsquery('simple', $1) LIMIT 1001) them",
);

/// What is looked for.
pub(super) enum Telling {
    /// Any of these words, wherever they stand.
    Words(Vec<String>),
    /// A word that too many have, in names alone.
    Name(String),
}

/// How many tools have a word, as was seen lately.
#[derive(Default)]
pub(super) struct Words {
    seen: Mutex<HashMap<String, (u64, Instant)>>,
}

impl Words {
    fn get(&self, word: &str) -> Option<u64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(word).filter(|(_, at)| at.elapsed() < FRESH).map(|(count, _)| *count)
    }

    fn set(&self, word: &str, count: u64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_KEPT {
            seen.clear();
        }
        seen.insert(word.to_owned(), (count, Instant::now()));
    }
}

impl Store {
    /// The words of a question that are worth looking for, rarest first: as many as lead to a bounded number of tools. The
    /// leg of meaning knows about the others.
    pub(super) async fn telling(&self, text: &str) -> Result<Telling, RegistryError> {
        let mut counted = Vec::new();
        for word in asked(text) {
            let count = self.count(&word).await?;
            if count > 0 {
                counted.push((count, word));
            }
        }
        counted.sort_unstable();
        let rarest = counted.first().map(|(_, word)| word.clone());
        let mut ranked = 0;
        let fits = |(count, word): (u64, String)| {
            ranked += count;
            (ranked <= MOST_RANKED).then_some(word)
        };
        let words: Vec<String> = counted.into_iter().map_while(fits).collect();
        Ok(match rarest {
            Some(rarest) if words.is_empty() => Telling::Name(rarest),
            _ => Telling::Words(words),
        })
    }

    async fn count(&self, word: &str) -> Result<u64, RegistryError> {
        if let Some(count) = self.words.get(word) {
            return Ok(count);
        }
        let row = self.database.row(COUNT, values![word]).await?;
        let count = row.map(|mut row| row.count()).transpose()?.unwrap_or_default();
        // One that nobody has yet is looked for again: it may have come.
        if count > 0 {
            self.words.set(word, count);
        }
        Ok(count)
    }
}

/// The different words of a question.
fn asked(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    words(text, 64).into_iter().filter(|word| seen.insert(word.clone())).take(MOST_ASKED).collect()
}

/// The words of a text: letters and digits, small, without accents. Both engines index these and no others.
pub(super) fn words(text: &str, most: usize) -> Vec<String> {
    let plain: String = text
        .nfkd()
        .filter(|c| !unicode_normalization::char::is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .take(most * LONGEST_WORD)
        .collect();
    plain
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && word.len() <= LONGEST_WORD)
        .take(most)
        .map(str::to_owned)
        .collect()
}
