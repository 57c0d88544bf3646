//! A million items like real ones: names, sentences and parameters of the sets, put together anew.

use kiwi_search::{Item, Kind};

use super::chance::Chance;
use super::regimes::{parts, words};
use super::sets::{Set, name_and_rest};

/// Numbers below this have an ending of their own in each name.
const ENDINGS: usize = 36 * 36 * 36 * 36;
/// Spreads the endings of neighbours; shares no divisor with their number.
const SPREAD: usize = 1_234_577;

/// What items are put together from.
pub struct Items {
    verbs: Vec<String>,
    nouns: Vec<String>,
    sentences: Vec<String>,
    parameters: Vec<(String, String)>,
}

impl Items {
    /// Takes the sets apart.
    pub fn of(sets: &[Set]) -> Self {
        let mut own = Self { verbs: vec![], nouns: vec![], sentences: vec![], parameters: vec![] };
        for tool in sets.iter().flat_map(|set| &set.tools) {
            let (name, rest) = name_and_rest(tool);
            let is_plain = |word: &String| word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase());
            let mut words = words(name).into_iter().filter(is_plain);
            own.verbs.extend(words.next());
            own.nouns.extend(words);
            let (description, parameters) = parts(rest);
            let sentences = description.split_inclusive(". ").map(str::trim).filter(|it| it.len() > 8);
            own.sentences.extend(sentences.map(str::to_owned));
            let parameters = parameters.into_iter().filter(|(_, meaning)| !meaning.is_empty());
            own.parameters.extend(parameters.map(|(name, meaning)| (name.to_owned(), meaning.to_owned())));
        }
        for words in [&mut own.verbs, &mut own.nouns] {
            words.sort();
            words.dedup();
        }
        own
    }

    /// The name of an item: a verb, one noun or two, and an ending that no other has.
    pub fn name(&self, number: usize) -> String {
        let mut chance = Chance::of(&format!("name/{number}"));
        let (verb, noun) = (chance.one(&self.verbs), chance.one(&self.nouns));
        let more = if chance.is_within(50) { format!("_{}", chance.one(&self.nouns)) } else { String::new() };
        format!("{verb}_{noun}{more}_{}", ending(number))
    }

    /// The item of a number.
    pub fn item(&self, number: usize) -> Item {
        let mut chance = Chance::of(&format!("item/{number}"));
        let mut description = chance.one(&self.sentences);
        if chance.is_within(60) {
            description.push(' ');
            description.push_str(&chance.one(&self.sentences));
        }
        let parameters: Vec<(String, String)> =
            (0..chance.pick(5)).map(|_| chance.one(&self.parameters)).collect();
        let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        Item {
            kind: Kind::Tool,
            id: self.name(number),
            title: None,
            version: Some("1.0.0".to_owned()),
            description,
            signature: format!("({})", names.join(", ")),
            parameters,
            tags: Vec::new(),
            category: format!("area_{}/part_{:02}", number % 10, number / 10 % 100),
            tool_type: Some("python".to_owned()),
            runtime: None,
            is_support: false,
            is_alone: false,
            body: String::new(),
        }
    }
}

/// Four letters or digits, another four for each number.
fn ending(number: usize) -> String {
    let mut left = number * SPREAD % ENDINGS;
    let mut ending = String::new();
    for _ in 0..4 {
        let digit = u32::try_from(left % 36).unwrap_or(0);
        ending.extend(char::from_digit(digit, 36));
        left /= 36;
    }
    ending
}

/// A name with one slip of the finger: a letter too many, too few, another, or two in the wrong order.
pub fn slip(name: &str, chance: &mut Chance) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    // Marks between words are not looked at, so a slip in one would be none.
    let places: Vec<usize> =
        letters.iter().enumerate().filter(|(_, c)| c.is_alphanumeric()).map(|(at, _)| at).collect();
    let (at, kind) = (chance.one(&places), chance.pick(4));
    let other = char::from_digit(u32::try_from(chance.pick(36)).unwrap_or(0), 36).unwrap_or('x');
    let here = letters.get(at).copied();
    let next = letters.get(at + 1).copied().filter(|c| c.is_alphanumeric() && here != Some(*c));
    match (kind, letters.get_mut(at)) {
        (0, Some(letter)) if *letter != other => *letter = other,
        (1, Some(_)) => drop(letters.remove(at)),
        (2, Some(_)) if next.is_some() => letters.swap(at, at + 1),
        _ => letters.insert(at, other),
    }
    letters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn endings_are_all_different() {
        let endings: HashSet<String> = (0..1_000_000).map(ending).collect();
        assert_eq!(endings.len(), 1_000_000);
    }

    #[test]
    fn a_slip_changes_a_name_by_one_letter() {
        let mut chance = Chance::of("slips");
        for _ in 0..1000 {
            let slipped = slip("get_weather_ab12", &mut chance);
            assert_eq!(strsim::osa_distance("get_weather_ab12", &slipped), 1, "{slipped}");
        }
    }
}
