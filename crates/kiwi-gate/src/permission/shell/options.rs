//! Options of programs that run others. One that is not known might change what runs, and is refused.

use super::syntax::Word;

/// The options that a program may be given.
///
/// What is listed both without a value and with one has it in the same word or not at all. A letter of that kind must
/// be the last of its word: not every version takes what stands behind it as the value.
#[derive(Debug, Default)]
pub(super) struct Spec<'a> {
    /// Letters without a value.
    pub flags: &'a str,
    /// Letters with one.
    pub valued: &'a str,
    /// Long names without a value.
    pub long: &'a [&'a str],
    /// Long names with one.
    pub long_valued: &'a [&'a str],
}

/// An option that was given.
#[derive(Debug)]
pub(super) struct Given<'a> {
    /// Its letter or long name, without dashes.
    pub name: &'a str,
    pub value: Option<Word>,
    /// Whether the value is a word of its own.
    pub is_apart: bool,
}

/// The options of a program, and what stands behind them.
#[derive(Debug)]
pub(super) struct Options<'a> {
    pub given: Vec<Given<'a>>,
    pub rest: &'a [Word],
}

/// What stands behind the options.
pub(super) fn operands<'a>(args: &'a [Word], spec: &Spec<'_>) -> Result<&'a [Word], String> {
    Ok(options(args, spec)?.rest)
}

/// The options, each by itself.
pub(super) fn options<'a>(args: &'a [Word], spec: &Spec<'_>) -> Result<Options<'a>, String> {
    let mut given = Vec::new();
    let mut rest = args;
    while let Some((word, after)) = rest.split_first() {
        let Some(text) = word.fixed() else {
            if word.may_be_option() {
                return Err("an option is only known when it runs".into());
            }
            break;
        };
        if text == "--" {
            rest = after;
            break;
        }
        let takes_next = if let Some(long) = text.strip_prefix("--") {
            long_option(long, spec, &mut given)
        } else if text.len() > 1 && text.starts_with('-') {
            letters(text.trim_start_matches('-'), spec, &mut given)
        } else {
            break;
        };
        rest = after;
        if takes_next.ok_or_else(|| format!("what the option `{text}` does is not known here"))? {
            let (next, behind) = value(after)?;
            rest = behind;
            if let Some(last) = given.last_mut() {
                last.value = Some(next.clone());
                last.is_apart = true;
            }
        }
    }
    Ok(Options { given, rest })
}

/// Reads a long option. Whether the next word is its value, or nothing where it is not known.
fn long_option<'a>(long: &'a str, spec: &Spec<'_>, given: &mut Vec<Given<'a>>) -> Option<bool> {
    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    let stands_alone = spec.long.contains(&name);
    let has_value = spec.long_valued.contains(&name);
    let fixed = value.map(|value| Word::Fixed(value.to_owned()));
    given.push(Given { name, value: fixed, is_apart: false });
    (if value.is_some() { has_value } else { stands_alone || has_value })
        .then_some(value.is_none() && !stands_alone)
}

/// Reads a word of letters, likewise.
fn letters<'a>(letters: &'a str, spec: &Spec<'_>, given: &mut Vec<Given<'a>>) -> Option<bool> {
    for (at, letter) in letters.char_indices() {
        let (name, behind) = letters.get(at..)?.split_at_checked(letter.len_utf8())?;
        given.push(Given { name, value: None, is_apart: false });
        match (spec.flags.contains(letter), spec.valued.contains(letter)) {
            (true, false) => {}
            (true, true) => return behind.is_empty().then_some(false),
            (false, true) => {
                let value = (!behind.is_empty()).then(|| Word::Fixed(behind.to_owned()));
                let is_missing = value.is_none();
                given.last_mut()?.value = value;
                return Some(is_missing);
            }
            (false, false) => return None,
        }
    }
    Some(false)
}

/// The word that is a value, and what stands behind it. What may become several words, or none, would move all others.
pub(super) fn value(words: &[Word]) -> Result<(&Word, &[Word]), String> {
    match words.split_first() {
        None => Err("an option has no value".into()),
        Some((word, _)) if word.is_split() => Err("how many words a value becomes cannot be told".into()),
        Some(found) => Ok(found),
    }
}
