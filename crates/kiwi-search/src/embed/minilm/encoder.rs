//! The model: tokens to one vector.

use super::Refusal;
use super::config::Config;
use super::matrix::{Matrix, MatrixMut, multiply};
use super::numbers::{count, gelu, normalise, softmax, unit};
use super::weights::Weights;

/// A BERT encoder with mean pooling.
#[derive(Debug)]
pub(super) struct Encoder {
    hidden: usize,
    heads: usize,
    epsilon: f32,
    /// One row for each word.
    words: Vec<f32>,
    /// One row for each position, with what every first sentence gets added already.
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    /// Query, key and value one below the other: one product instead of three.
    attention: Dense,
    gather: Dense,
    gather_norm: Norm,
    widen: Dense,
    narrow: Dense,
    narrow_norm: Norm,
}

/// `rows * weight^T + bias`.
#[derive(Debug)]
struct Dense {
    inputs: usize,
    outputs: usize,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

#[derive(Debug)]
struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Encoder {
    pub(super) fn new(config: &Config, weights: &Weights<'_>) -> Result<Self, Refusal> {
        let hidden = config.hidden;
        let words = weights.take("embeddings.word_embeddings.weight", &[config.words, hidden])?;
        let mut positions =
            weights.take("embeddings.position_embeddings.weight", &[config.positions, hidden])?;
        let kinds = weights.take("embeddings.token_type_embeddings.weight", &[config.kinds, hidden])?;
        for row in positions.chunks_exact_mut(hidden) {
            row.iter_mut().zip(&kinds).for_each(|(number, kind)| *number += kind);
        }
        let norm = Norm::read(weights, "embeddings.LayerNorm", hidden)?;
        let layers = (0..config.layers).map(|number| Layer::read(weights, number, config));
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(Self { hidden, heads: config.heads, epsilon: config.epsilon, words, positions, norm, layers })
    }

    pub(super) fn dimensions(&self) -> usize {
        self.hidden
    }

    /// The mean of what the last layer says of each token, at length 1.
    pub(super) fn vector(&self, tokens: &[u32]) -> Vec<f32> {
        let mut rows = self.first(tokens);
        for layer in &self.layers {
            layer.apply(self, &mut rows);
        }
        let mut mean = vec![0.0; self.hidden];
        let tokens = count(rows.len() / self.hidden);
        for row in rows.chunks_exact(self.hidden) {
            mean.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        for sum in &mut mean {
            *sum /= tokens;
        }
        unit(&mut mean);
        mean
    }

    /// What goes into the first layer. A token or a position that has no row adds none.
    fn first(&self, tokens: &[u32]) -> Vec<f32> {
        let mut rows = Vec::with_capacity(tokens.len() * self.hidden);
        for (token, position) in tokens.iter().zip(self.positions.chunks_exact(self.hidden)) {
            let token = usize::try_from(*token).unwrap_or(usize::MAX);
            let Some(word) = self.words.chunks_exact(self.hidden).nth(token) else { continue };
            let start = rows.len();
            rows.extend(word.iter().zip(position).map(|(word, position)| word + position));
            self.norm.apply(rows.get_mut(start..).unwrap_or_default(), self.epsilon);
        }
        rows
    }
}

impl Layer {
    fn read(weights: &Weights<'_>, number: usize, config: &Config) -> Result<Self, Refusal> {
        let (hidden, wide) = (config.hidden, config.intermediate);
        let dense = |name: &str, outputs: usize, inputs: usize| {
            Dense::read(weights, &format!("encoder.layer.{number}.{name}"), outputs, inputs)
        };
        let norm =
            |name: &str| Norm::read(weights, &format!("encoder.layer.{number}.{name}.LayerNorm"), hidden);
        let mut attention = dense("attention.self.query", hidden, hidden)?;
        attention.append(dense("attention.self.key", hidden, hidden)?);
        attention.append(dense("attention.self.value", hidden, hidden)?);
        Ok(Self {
            attention,
            gather: dense("attention.output.dense", hidden, hidden)?,
            gather_norm: norm("attention.output")?,
            widen: dense("intermediate.dense", wide, hidden)?,
            narrow: dense("output.dense", hidden, wide)?,
            narrow_norm: norm("output")?,
        })
    }

    fn apply(&self, model: &Encoder, rows: &mut [f32]) {
        let asked = self.attention.apply(rows);
        let seen = self.gather.apply(&attend(&asked, model.hidden, model.heads));
        add(rows, &seen);
        rows.chunks_exact_mut(model.hidden).for_each(|row| self.gather_norm.apply(row, model.epsilon));
        let mut wide = self.widen.apply(rows);
        for number in &mut wide {
            *number = gelu(*number);
        }
        add(rows, &self.narrow.apply(&wide));
        rows.chunks_exact_mut(model.hidden).for_each(|row| self.narrow_norm.apply(row, model.epsilon));
    }
}

/// Each token gathers from all others what its query finds in their keys. A row of `asked` is query, key and value.
fn attend(asked: &[f32], hidden: usize, heads: usize) -> Vec<f32> {
    let step = 3 * hidden;
    let (tokens, size) = (asked.len() / step, hidden / heads);
    let mut shares = vec![0.0; tokens * tokens];
    let mut gathered = vec![0.0; tokens * hidden];
    if tokens == 0 {
        return gathered;
    }
    let factor = count(size).sqrt().recip();
    for head in 0..heads {
        let part = |offset: usize| {
            Matrix::new(asked.get(offset + head * size..).unwrap_or_default(), tokens, size, step)
        };
        let (query, key, value) = (part(0), part(hidden), part(2 * hidden));
        multiply(
            factor,
            query,
            key.transposed(),
            0.0,
            &mut MatrixMut::new(&mut shares, tokens, tokens, tokens),
        );
        shares.chunks_exact_mut(tokens).for_each(softmax);
        let to = gathered.get_mut(head * size..).unwrap_or_default();
        let shares = Matrix::new(&shares, tokens, tokens, tokens);
        multiply(1.0, shares, value, 0.0, &mut MatrixMut::new(to, tokens, size, hidden));
    }
    gathered
}

fn add(rows: &mut [f32], others: &[f32]) {
    rows.iter_mut().zip(others).for_each(|(number, other)| *number += other);
}

impl Dense {
    fn read(weights: &Weights<'_>, name: &str, outputs: usize, inputs: usize) -> Result<Self, Refusal> {
        let weight = weights.take(&format!("{name}.weight"), &[outputs, inputs])?;
        Ok(Self { inputs, outputs, weight, bias: weights.take(&format!("{name}.bias"), &[outputs])? })
    }

    fn append(&mut self, below: Self) {
        self.outputs += below.outputs;
        self.weight.extend(below.weight);
        self.bias.extend(below.bias);
    }

    fn apply(&self, rows: &[f32]) -> Vec<f32> {
        let tokens = rows.len() / self.inputs;
        let mut results = self.bias.repeat(tokens);
        if tokens > 0 {
            let weight = Matrix::new(&self.weight, self.outputs, self.inputs, self.inputs);
            let rows = Matrix::new(rows, tokens, self.inputs, self.inputs);
            let mut to = MatrixMut::new(&mut results, tokens, self.outputs, self.outputs);
            multiply(1.0, rows, weight.transposed(), 1.0, &mut to);
        }
        results
    }
}

impl Norm {
    fn read(weights: &Weights<'_>, name: &str, size: usize) -> Result<Self, Refusal> {
        let take = |part: &str| weights.take(&format!("{name}.{part}"), &[size]);
        Ok(Self { weight: take("weight")?, bias: take("bias")? })
    }

    fn apply(&self, row: &mut [f32], epsilon: f32) {
        normalise(row, &self.weight, &self.bias, epsilon);
    }
}
