//! What the folder says about the model's shape.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;

use super::{Refusal, file, optional};

/// Where the folder does not say how many tokens a text may have.
const DEFAULT_TOKENS: usize = 256;

/// The shape of the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Config {
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) intermediate: usize,
    pub(super) positions: usize,
    pub(super) words: usize,
    /// Kinds of sentences; the first is for every text here.
    pub(super) kinds: usize,
    pub(super) epsilon: f32,
    /// Of one text, start and end included.
    pub(super) max_tokens: usize,
}

/// `config.json`, as far as it matters here.
#[derive(Deserialize)]
struct Described {
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    vocab_size: usize,
    #[serde(default = "usual_kinds")]
    type_vocab_size: usize,
    #[serde(default = "usual_epsilon")]
    layer_norm_eps: f32,
    #[serde(default = "usual_type")]
    model_type: String,
    #[serde(default = "usual_activation")]
    hidden_act: String,
    #[serde(default = "usual_positions")]
    position_embedding_type: String,
}

/// `sentence_bert_config.json`.
#[derive(Deserialize)]
struct Sentence {
    max_seq_length: Option<usize>,
}

/// `tokenizer_config.json`.
#[derive(Deserialize)]
struct Letters {
    #[serde(default = "yes")]
    do_lower_case: bool,
}

/// `1_Pooling/config.json`.
#[derive(Deserialize)]
struct Pooling {
    #[serde(default = "yes")]
    pooling_mode_mean_tokens: bool,
}

fn usual_epsilon() -> f32 {
    1e-12
}

fn usual_kinds() -> usize {
    2
}

fn usual_type() -> String {
    "bert".to_owned()
}

fn usual_activation() -> String {
    "gelu".to_owned()
}

fn usual_positions() -> String {
    "absolute".to_owned()
}

fn yes() -> bool {
    true
}

impl Config {
    pub(super) fn read(folder: &Path) -> Result<Self, Refusal> {
        const FILE: &str = "config.json";
        let model: Described = parse(FILE, &file(folder, FILE)?)?;
        for (name, value, wanted) in [
            ("model_type", &model.model_type, "bert"),
            ("hidden_act", &model.hidden_act, "gelu"),
            ("position_embedding_type", &model.position_embedding_type, "absolute"),
        ] {
            if value != wanted {
                let why = format!("`{name}` is `{value}`, and only `{wanted}` can be computed");
                return Err(Refusal::of(FILE, why));
            }
        }
        let config = Self {
            hidden: model.hidden_size,
            layers: model.num_hidden_layers,
            heads: model.num_attention_heads,
            intermediate: model.intermediate_size,
            positions: model.max_position_embeddings,
            words: model.vocab_size,
            kinds: model.type_vocab_size,
            epsilon: model.layer_norm_eps,
            max_tokens: max_tokens(folder)?.min(model.max_position_embeddings),
        };
        config.check().map_err(|why| Refusal::of(FILE, why))?;
        refuse_other_ways(folder)?;
        Ok(config)
    }

    /// Numbers that no model of this kind has would only end in a confusing error later, or in no end at all.
    fn check(&self) -> Result<(), String> {
        for (name, number, most) in [
            ("hidden_size", self.hidden, 1 << 14),
            ("num_hidden_layers", self.layers, 1 << 8),
            ("num_attention_heads", self.heads, 1 << 8),
            ("intermediate_size", self.intermediate, 1 << 16),
            ("max_position_embeddings", self.positions, 1 << 16),
            ("vocab_size", self.words, 1 << 24),
            ("type_vocab_size", self.kinds, 1 << 8),
        ] {
            if number == 0 || number > most {
                return Err(format!("`{name}` is {number}, and must be from 1 to {most}"));
            }
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return Err(format!("{} dimensions cannot be shared by {} heads", self.hidden, self.heads));
        }
        if self.max_tokens < 2 {
            return Err("there must be room for the marks of start and end".to_owned());
        }
        Ok(())
    }
}

fn max_tokens(folder: &Path) -> Result<usize, Refusal> {
    const FILE: &str = "sentence_bert_config.json";
    let Some(bytes) = optional(folder, FILE)? else { return Ok(DEFAULT_TOKENS) };
    let sentence: Sentence = parse(FILE, &bytes)?;
    Ok(sentence.max_seq_length.unwrap_or(DEFAULT_TOKENS))
}

/// Other letters and other pooling give other vectors, and nothing else would tell.
fn refuse_other_ways(folder: &Path) -> Result<(), Refusal> {
    const LETTERS: &str = "tokenizer_config.json";
    const POOLING: &str = "1_Pooling/config.json";
    if let Some(bytes) = optional(folder, LETTERS)?
        && !parse::<Letters>(LETTERS, &bytes)?.do_lower_case
    {
        return Err(Refusal::of(
            LETTERS,
            "the model tells capitals from small letters, which is not done here",
        ));
    }
    if let Some(bytes) = optional(folder, POOLING)?
        && !parse::<Pooling>(POOLING, &bytes)?.pooling_mode_mean_tokens
    {
        return Err(Refusal::of(
            POOLING,
            "the model does not pool by the mean, and nothing else is done here",
        ));
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(file: &str, bytes: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| Refusal::of(file, error))
}
