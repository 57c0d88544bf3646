//! The numbers of a model, by name.

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::Refusal;

const FILE: &str = "model.safetensors";
/// Exporters put one of these before BERT's own names, or nothing.
const PREFIXES: [&str; 4] = ["", "bert.", "0.auto_model.", "model."];
/// A tensor that every model has.
const WITNESS: &str = "embeddings.word_embeddings.weight";

/// The tensors of a file.
pub(super) struct Weights<'bytes> {
    tensors: SafeTensors<'bytes>,
    prefix: &'static str,
}

impl<'bytes> Weights<'bytes> {
    pub(super) fn read(bytes: &'bytes [u8]) -> Result<Self, Refusal> {
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| Refusal::of(FILE, error))?;
        let has = |prefix: &&str| tensors.tensor(&format!("{prefix}{WITNESS}")).is_ok();
        let prefix = PREFIXES.into_iter().find(has).ok_or_else(|| missing(WITNESS))?;
        Ok(Self { tensors, prefix })
    }

    /// The numbers of a tensor that must have this shape.
    pub(super) fn take(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Refusal> {
        let name = format!("{}{name}", self.prefix);
        // Old exports of BERT call the two vectors of a norm by other names.
        let older =
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
        let tensor = self.tensors.tensor(&name).or_else(|_| self.tensors.tensor(&older));
        let tensor = tensor.map_err(|_| missing(&name))?;
        if tensor.shape() != shape {
            let why =
                format!("`{name}` has the shape {:?}, and `config.json` wants {shape:?}", tensor.shape());
            return Err(Refusal::of(FILE, why));
        }
        let Some(numbers) = numbers(&tensor) else {
            let why = format!("`{name}` is of type {:?}; f32, f16 and bf16 are read", tensor.dtype());
            return Err(Refusal::of(FILE, why));
        };
        // One of these would make every vector worthless, and comparisons with them never fail loudly.
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(Refusal::of(FILE, format_args!("`{name}` holds what is no finite number")));
        }
        Ok(numbers)
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::of(FILE, format_args!("there is no tensor `{name}`"))
}

fn numbers(tensor: &TensorView<'_>) -> Option<Vec<f32>> {
    let pairs = tensor.data().as_chunks::<2>().0;
    match tensor.dtype() {
        Dtype::F32 => {
            Some(tensor.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
        Dtype::F16 => Some(pairs.iter().map(|bytes| half(u16::from_le_bytes(*bytes))).collect()),
        Dtype::BF16 => Some(pairs.iter().map(|bytes| brain(u16::from_le_bytes(*bytes))).collect()),
        _ => None,
    }
}

/// A bf16: the upper half of an f32.
pub(super) fn brain(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// An IEEE half: 1 bit of sign, 5 of exponent, 10 of fraction.
pub(super) fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f32::from(bits & 0x3ff);
    let exponent = bits >> 10 & 0x1f;
    let size = match exponent {
        0 => fraction * 2.0_f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        _ => (1024.0 + fraction) * 2.0_f32.powi(i32::from(exponent) - 25),
    };
    sign * size
}
