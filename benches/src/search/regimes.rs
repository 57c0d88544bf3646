//! Questions of other kinds, made from a set: some quote tools, some ask for several things, some are only a few words.
//!
//! People ask in all these ways, and a set has but one of them. Everything is drawn in a fixed order, so every run asks the
//! same.

use super::chance::Chance;
use super::sets::{Question, Set, name_and_rest};

/// Questions of each kind.
const COUNT: usize = 250;
const GREETINGS: [&str; 8] = [
    "Can you please",
    "I need to",
    "I want to",
    "Please",
    "Could you",
    "Help me to",
    "I would like to",
    "Hi, can you",
];
const VALUES: [&str; 30] = [
    "Emily Johnson",
    "San Francisco",
    "New York",
    "2023-08-15",
    "15",
    "London",
    "'summer sale'",
    "ABC123",
    "John",
    "500",
    "March 3rd",
    "blue",
    "Paris, France",
    "3.5",
    "example@email.com",
    "The Great Gatsby",
    "Acme Corp",
    "high",
    "Tokyo",
    "'project alpha'",
    "10 kilometers",
    "Sarah",
    "english",
    "0.75",
    "user_42",
    "medium",
    "next Monday",
    "a red bicycle",
    "coffee",
    "Mount Everest",
];
const JOINTS: [&str; 10] = [
    " and then ",
    " Also, ",
    ", and ",
    " After that, ",
    " and ",
    ", ",
    " Additionally, ",
    " plus ",
    " while ",
    " as well as ",
];
/// Words before a colon that are no parameters.
const NO_PARAMETERS: &str =
    "eg example examples note options default e g format values include are is following as http https";
/// English words of grammar.
const GRAMMAR: &str = "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her \
    hers herself it its itself they them their theirs themselves what which who whom this that these those am is are was \
    were be been being have has had having do does did doing would should could ought a an the and but if or because as \
    until while of at by for with about against between into through during before after above below to from up down in \
    out on off over under again further then once here there when where why how all any both each few more most other \
    some such no nor not only own same so than too very s t can will just don now m re ve d ll";
/// Words with which people ask.
const ASKING: &str = "please want need like let know tell help hi hello thanks thank could";

/// What a kind of question is called, and its questions.
pub type Regime = (&'static str, Vec<Question>);

/// Every kind, the set's own questions first.
pub fn all(set: &Set) -> Vec<Regime> {
    let numbers = || 0..COUNT;
    vec![
        ("dev", set.questions.clone()),
        ("quote1", numbers().map(|at| quoting(set, "quote1", at)).collect()),
        ("quoteN", numbers().map(|at| quoting(set, "quoteN", at)).collect()),
        ("multi", numbers().map(|at| several(set, "multi", at)).collect()),
        ("short", numbers().map(|at| few_words(set, at)).collect()),
        ("shortN", numbers().map(|at| several(set, "shortN", at)).collect()),
    ]
}

fn begin(set: &Set, regime: &str, at: usize) -> Chance {
    Chance::of(&format!("{}/{regime}/{at}", set.name))
}

/// Asks for one tool or several by what their own texts say.
fn quoting(set: &Set, regime: &str, at: usize) -> Question {
    let mut chance = begin(set, regime, at);
    let mut text = chance.one(&GREETINGS).to_owned() + " ";
    let count = if regime == "quote1" { 1 } else { 2 + chance.pick(3) };
    let mut answers = Vec::new();
    for _ in 0..count {
        let number = chance.pick(set.tools.len());
        if answers.contains(&number) {
            continue;
        }
        if !answers.is_empty() {
            text.push_str(&joint(&mut chance));
        }
        answers.push(number);
        text.push_str(&quote(set.tools.get(number).map_or("", String::as_str), &mut chance));
    }
    text.push_str(chance.one(&[".", "?", ""]));
    Question { text, answers }
}

/// What stands between two questions; a new sentence needs an end of the last.
fn joint(chance: &mut Chance) -> String {
    let joint = chance.one(&JOINTS);
    if joint.starts_with(" A") { format!(".{joint}") } else { joint.to_owned() }
}

/// Several of the set's questions in one.
fn several(set: &Set, regime: &str, at: usize) -> Question {
    let mut chance = begin(set, regime, at);
    let (mut text, mut answers) = (String::new(), Vec::new());
    for _ in 0..2 + chance.pick(2) {
        let Some(question) = set.questions.get(chance.pick(set.questions.len())) else { continue };
        let own =
            if regime == "shortN" { shortened(&question.text, &mut chance) } else { question.text.clone() };
        let own = own.trim().trim_end_matches(['.', '?', '!', ' ']);
        let joint = joint(&mut chance);
        if text.is_empty() {
            own.clone_into(&mut text);
        } else {
            text.push_str(&joint);
            text.push_str(&lowered(own));
        }
        for answer in &question.answers {
            if !answers.contains(answer) {
                answers.push(*answer);
            }
        }
    }
    Question { text, answers }
}

fn few_words(set: &Set, at: usize) -> Question {
    let mut chance = begin(set, "short", at);
    match set.questions.get(at * 7 % set.questions.len().max(1)) {
        Some(question) => {
            Question { text: shortened(&question.text, &mut chance), answers: question.answers.clone() }
        }
        None => Question { text: String::new(), answers: Vec::new() },
    }
}

/// A few words in a row that say something.
fn shortened(text: &str, chance: &mut Chance) -> String {
    let telling: Vec<&str> =
        spoken(text).into_iter().filter(|word| !is_among(GRAMMAR, word) && !is_among(ASKING, word)).collect();
    if telling.is_empty() {
        return text.to_owned();
    }
    let count = telling.len().min(2 + chance.pick(3));
    let start = chance.pick(telling.len() - count + 1);
    telling.into_iter().skip(start).take(count).collect::<Vec<_>>().join(" ")
}

fn is_among(list: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    list.split_whitespace().any(|known| known == word)
}

/// Words as they are spoken: each begins with a letter or digit and ends at a space or a mark.
fn spoken(text: &str) -> Vec<&str> {
    let ends = |c: char| c.is_whitespace() || ",;:!?\"()".contains(c);
    text.split(ends)
        .filter_map(|run| {
            let start = run.find(char::is_alphanumeric)?;
            run.get(start..)
        })
        .collect()
}

/// One clause that quotes a tool: its name, a sentence of its description, values for some of its parameters.
fn quote(tool: &str, chance: &mut Chance) -> String {
    let (name, rest) = name_and_rest(tool);
    let (description, parameters) = parts(rest);
    let name_words = words(name).join(" ");
    let sentence = first_sentence(description);
    let sentence = if sentence.is_empty() { name } else { sentence };
    let kind = chance.pick(4);
    let mut described = || {
        let is_kept = |word: &&str| is_among(GRAMMAR, word) || chance.is_within(65);
        let kept: Vec<&str> = sentence.split_whitespace().filter(is_kept).collect();
        let kept: Vec<&str> = kept.into_iter().take(12).collect();
        if kept.is_empty() { name_words.clone() } else { lowered(&kept.join(" ")) }
    };
    let mut text = match kind {
        0 => name_words,
        3 => format!("{name_words} to {}", described()),
        _ => described(),
    };
    let count = parameters.len().min(chance.pick(4));
    let start = if parameters.is_empty() { 0 } else { chance.pick(parameters.len()) };
    for (parameter, _) in parameters.iter().cycle().skip(start).take(count) {
        let parameter = words(parameter).join(" ");
        let value = chance.one(&VALUES);
        let forms = [
            format!(" with {parameter} {value}"),
            format!(" for {value}"),
            format!(", {parameter} {value}"),
            format!(" in {value}"),
            format!(" where the {parameter} is {value}"),
        ];
        text.push_str(&chance.one(&forms));
    }
    if count == 0 && chance.is_within(70) {
        text.push_str(chance.one(&[" for ", " in ", " about "]));
        text.push_str(chance.one(&VALUES));
    }
    text
}

fn lowered(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_lowercase().chain(characters).collect()).unwrap_or_default()
}

/// What comes before the first parameter, and each parameter with what is said about it.
pub fn parts(rest: &str) -> (&str, Vec<(&str, &str)>) {
    let mut found: Vec<(usize, &str)> = Vec::new();
    let mut before = ' ';
    let mut at = 0;
    while let Some(here) = rest.get(at..).filter(|here| !here.is_empty()) {
        let length = here.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(here.len());
        let (word, behind) = here.split_at(length);
        let is_name =
            before.is_whitespace() && !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit());
        if is_name && behind.starts_with(": ") {
            if !is_among(NO_PARAMETERS, word) {
                found.push((at, word));
            }
            before = ' ';
            at += length + 2;
        } else {
            let step = length.max(here.chars().next().map_or(1, char::len_utf8));
            before = here.get(..step).and_then(|passed| passed.chars().next_back()).unwrap_or(' ');
            at += step;
        }
    }
    let text = |from: usize, to: usize| rest.get(from..to).unwrap_or_default().trim();
    let first = found.first().map_or(rest.len(), |(at, _)| *at);
    let ends = found.iter().map(|(at, _)| *at).skip(1).chain([rest.len()]);
    let parameters = found.iter().zip(ends).map(|((at, name), end)| (*name, text(at + name.len() + 2, end)));
    (text(0, first), parameters.collect())
}

/// Up to the end of the first sentence, or to the first comma, semicolon or bracket; without its mark.
fn first_sentence(description: &str) -> &str {
    let mut before = ' ';
    let end = description.find(|c: char| {
        let is_end = matches!(c, ',' | ';' | '(') || c.is_whitespace() && matches!(before, '.' | '!' | '?');
        before = c;
        is_end
    });
    let sentence = end.and_then(|end| description.get(..end)).unwrap_or(description);
    sentence.trim().trim_end_matches(['.', '!', '?'])
}

/// The words of a name, in small letters.
pub fn words(name: &str) -> Vec<String> {
    let runs = name.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    runs.flat_map(|run| if run.is_ascii() { humps(run) } else { vec![run.to_lowercase()] }).collect()
}

/// The words of a run of ASCII letters and digits: `HTTPServer` is `http` and `server`.
fn humps(mut run: &str) -> Vec<String> {
    let mut words = Vec::new();
    while !run.is_empty() {
        let count = |text: &str, is: fn(&char) -> bool| text.chars().take_while(is).count();
        let is_small = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let large = count(run, char::is_ascii_uppercase);
        let behind = run.get(large..).unwrap_or_default();
        let length = match large {
            0 => count(run, is_small),
            1 if behind.starts_with(|c| is_small(&c)) => 1 + count(behind, is_small),
            2.. if behind.starts_with(|c: char| c.is_ascii_lowercase()) => large - 1,
            _ => large + count(behind, char::is_ascii_digit),
        };
        let (word, rest) = run.split_at(length.max(1));
        words.push(word.to_ascii_lowercase());
        run = rest;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_words() {
        for (name, expect) in [
            ("readCsv_now", vec!["read", "csv", "now"]),
            ("HTTPServer2go", vec!["http", "server2go"]),
            ("AB1c", vec!["ab1", "c"]),
            ("Get.X", vec!["get", "x"]),
        ] {
            assert_eq!(words(name), expect, "{name}");
        }
    }

    #[test]
    fn a_text_falls_into_description_and_parameters() {
        let (description, parameters) =
            parts("Finds a thing. Note: slow. path: Where. max_size: How much, e: no.");
        assert_eq!(description, "Finds a thing. Note: slow.");
        assert_eq!(parameters, [("path", "Where."), ("max_size", "How much, e: no.")]);
        assert_eq!(first_sentence("Finds it (fast), always."), "Finds it");
        assert_eq!(first_sentence("Finds 1.5 of it. Then more"), "Finds 1.5 of it");
    }

    #[test]
    fn the_same_is_drawn_in_every_run() {
        let mut chance = Chance::of("BFCL/quote1/0");
        let drawn = [chance.pick(1000), chance.pick(1000), chance.pick(1000)];
        let mut again = Chance::of("BFCL/quote1/0");
        assert_eq!(drawn, [again.pick(1000), again.pick(1000), again.pick(1000)]);
    }
}
