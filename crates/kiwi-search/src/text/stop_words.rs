//! Words that say nothing about what is looked for.

/// English words of grammar, and those with which people ask for things.
const STOP_WORDS: &str = "\
    a about above after again against all am an and any are as at be because been before being below between both but by \
    can could d did do does doing don down during each few for from further had has have having he her here hers herself \
    him himself his how i if in into is it its itself just ll m me more most my myself no nor not now of off on once only \
    or other ought our ours ourselves out over own re s same she should so some such t than that the their theirs them \
    themselves then there these they this those through to too under until up ve very was we were what when where which \
    while who whom why will with would you your yours yourself yourselves \
    hello help hi know let like need please tell thank thanks want";

/// Whether a word, in small letters, says nothing.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.split(' ').any(|stop| stop == word)
}

/// All of them.
pub(super) fn stop_words() -> impl Iterator<Item = String> {
    STOP_WORDS.split(' ').filter(|word| !word.is_empty()).map(str::to_owned)
}
