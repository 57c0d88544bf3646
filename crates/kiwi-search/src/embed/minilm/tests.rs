//! Parts of the encoder against plain arithmetic, and folders that are no models.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;

use super::config::Config;
use super::matrix::{Matrix, MatrixMut, multiply};
use super::numbers::{error_function, gelu, normalise, softmax, unit};
use super::tokens::Tokenizer;
use super::weights::{brain, half};
use super::{EmbedError, Embedder, MiniLm};

const WORDS: [&str; 16] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "send", "an", "##s", "email", "cafe", ",", "[", "]", "sep", "日",
    "x", "##x",
];
const HIDDEN: usize = 8;

/// The tensors of a model with one layer, and their shapes.
fn tensors() -> Vec<(String, Vec<usize>)> {
    let (hidden, wide) = (HIDDEN, 12);
    let mut tensors = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![WORDS.len(), hidden]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![10, hidden]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, hidden]),
        ("embeddings.LayerNorm.weight".to_owned(), vec![hidden]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![hidden]),
    ];
    for (name, outputs, inputs) in [
        ("attention.self.query", hidden, hidden),
        ("attention.self.key", hidden, hidden),
        ("attention.self.value", hidden, hidden),
        ("attention.output.dense", hidden, hidden),
        ("intermediate.dense", wide, hidden),
        ("output.dense", hidden, wide),
    ] {
        tensors.push((format!("encoder.layer.0.{name}.weight"), vec![outputs, inputs]));
        tensors.push((format!("encoder.layer.0.{name}.bias"), vec![outputs]));
    }
    for name in ["attention.output", "output"] {
        for part in ["weight", "bias"] {
            tensors.push((format!("encoder.layer.0.{name}.LayerNorm.{part}"), vec![hidden]));
        }
    }
    tensors
}

/// Numbers that every type of the file can hold: sixteenths from -7 to 7.
fn number(seed: usize) -> f32 {
    f32::from(i16::try_from(seed * 37 % 15).unwrap() - 7) / 16.0
}

/// Bytes of a safetensors file: the length of a JSON header, the header, the data.
fn safetensors(tensors: &[(String, Vec<usize>)], kind: &str) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    let halves: Vec<u16> = (0..15).map(|seed| to_half(number(seed))).collect();
    for (place, (name, shape)) in tensors.iter().enumerate() {
        let start = data.len();
        for seed in 0..shape.iter().product() {
            let bits = number(seed + place).to_bits();
            match kind {
                "F32" => data.extend(bits.to_le_bytes()),
                "BF16" => data.extend(u16::try_from(bits >> 16).unwrap().to_le_bytes()),
                "F16" => data.extend(halves[(seed + place) % 15].to_le_bytes()),
                _ => data.push(0),
            }
        }
        header.insert(
            name.clone(),
            json!({"dtype": kind, "shape": shape, "data_offsets": [start, data.len()]}),
        );
    }
    let header = Value::Object(header).to_string();
    [u64::try_from(header.len()).unwrap().to_le_bytes().as_slice(), header.as_bytes(), &data].concat()
}

/// The half that `half` reads as this number, by trying all.
fn to_half(number: f32) -> u16 {
    (0..=u16::MAX).find(|bits| half(*bits).to_bits() == number.to_bits()).unwrap()
}

fn config() -> Value {
    json!({
        "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 12, "max_position_embeddings": 10, "vocab_size": WORDS.len(), "hidden_act": "gelu",
    })
}

fn write(folder: &Path, file: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "config.json", config().to_string());
    write(folder.path(), "vocab.txt", WORDS.join("\n"));
    write(folder.path(), "model.safetensors", safetensors(&tensors(), "F32"));
    folder
}

fn refusal(folder: &Path) -> String {
    match MiniLm::open(folder) {
        Err(EmbedError::Unreadable { folder: named, why }) => {
            assert_eq!(named, folder.display().to_string());
            why
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_type_and_every_prefix_gives_the_same_vectors() {
    let folder = model();
    let first = MiniLm::open(folder.path()).unwrap();
    assert_eq!(first.dimensions(), HIDDEN);
    let wanted = first.embed(&["send an email", "", "send an email"]).unwrap();
    assert!(wanted[0] == wanted[2] && wanted[0] != wanted[1]);
    let length = wanted[0].iter().map(|number| number * number).sum::<f32>();
    assert!((length - 1.0).abs() < 1e-5, "{length}");
    let mut ids = vec![first.id().to_owned()];
    for kind in ["F32", "F16", "BF16"] {
        for prefix in ["bert.", "0.auto_model.", "model."] {
            let named: Vec<_> =
                tensors().into_iter().map(|(name, shape)| (format!("{prefix}{name}"), shape)).collect();
            write(folder.path(), "model.safetensors", safetensors(&named, kind));
            let other = MiniLm::open(folder.path()).unwrap();
            assert_eq!(other.embed(&["send an email"]).unwrap()[0], wanted[0], "{kind} {prefix}");
            ids.push(other.id().to_owned());
        }
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 10, "another file is another id: {ids:?}");
}

#[test]
fn old_names_of_norms_are_known() {
    let folder = model();
    let wanted = MiniLm::open(folder.path()).unwrap().vector("send");
    let older = |name: String| {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    };
    let renamed: Vec<_> = tensors().into_iter().map(|(name, shape)| (older(name), shape)).collect();
    write(folder.path(), "model.safetensors", safetensors(&renamed, "F32"));
    assert_eq!(MiniLm::open(folder.path()).unwrap().vector("send"), wanted);
}

#[test]
fn a_vocabulary_inside_tokenizer_json_serves_as_well() {
    let folder = model();
    let first = MiniLm::open(folder.path()).unwrap();
    fs::remove_file(folder.path().join("vocab.txt")).unwrap();
    let words: serde_json::Map<_, _> =
        WORDS.iter().zip(0..).map(|(word, row)| ((*word).into(), json!(row))).collect();
    write(
        folder.path(),
        "tokenizer.json",
        json!({"model": {"type": "WordPiece", "vocab": words}}).to_string(),
    );
    let second = MiniLm::open(folder.path()).unwrap();
    assert_eq!(second.tokens("Send, emails"), first.tokens("Send, emails"));
    assert_eq!(second.id(), first.id());
}

#[test]
fn a_folder_that_is_no_model_is_refused_with_file_and_reason() {
    for file in ["config.json", "model.safetensors", "vocab.txt"] {
        let folder = model();
        fs::remove_file(folder.path().join(file)).unwrap();
        assert!(refusal(folder.path()).contains(file), "{}", refusal(folder.path()));
        for junk in ["", "{", "\0\0\0\0\0\0\0\0", "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}{}"] {
            write(folder.path(), file, junk);
            assert!(refusal(folder.path()).contains(file), "{file} {junk:?}");
        }
    }
    let missing = refusal(Path::new("/nowhere/at/all"));
    assert!(missing.contains("config.json"), "{missing}");
}

#[test]
fn each_missing_or_misshapen_tensor_is_named() {
    let folder = model();
    for place in 0..tensors().len() {
        let mut fewer = tensors();
        let (name, _) = fewer.remove(place);
        write(folder.path(), "model.safetensors", safetensors(&fewer, "F32"));
        assert!(refusal(folder.path()).contains(&name), "{}", refusal(folder.path()));
        let mut larger = tensors();
        larger[place].1[0] += 1;
        write(folder.path(), "model.safetensors", safetensors(&larger, "F32"));
        let why = refusal(folder.path());
        assert!(why.contains(&name) && why.contains("shape"), "{why}");
    }
    write(folder.path(), "model.safetensors", safetensors(&tensors(), "I8"));
    assert!(refusal(folder.path()).contains("I8"));
    let mut bytes = safetensors(&tensors(), "F32");
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    write(folder.path(), "model.safetensors", bytes);
    assert!(refusal(folder.path()).contains("finite"));
}

#[test]
fn other_kinds_of_models_are_refused() {
    for (file, key, value) in [
        ("config.json", "model_type", json!("roberta")),
        ("config.json", "hidden_act", json!("gelu_new")),
        ("config.json", "position_embedding_type", json!("relative_key")),
        ("config.json", "num_attention_heads", json!(3)),
        ("config.json", "num_attention_heads", json!(0)),
        ("config.json", "hidden_size", json!(0)),
        ("config.json", "hidden_size", json!(-1)),
        ("config.json", "hidden_size", json!(u64::MAX)),
        ("config.json", "max_position_embeddings", json!(1)),
        ("vocab.txt", "vocab_size", json!(3)),
        ("model.safetensors", "vocab_size", json!(99)),
        ("tokenizer_config.json", "do_lower_case", json!(false)),
        ("1_Pooling/config.json", "pooling_mode_mean_tokens", json!(false)),
        ("sentence_bert_config.json", "max_seq_length", json!("many")),
    ] {
        let folder = model();
        let mut config = config();
        if file.ends_with("config.json") && file != "config.json" {
            write(folder.path(), file, json!({key: value}).to_string());
        } else {
            config[key] = value.clone();
            write(folder.path(), "config.json", config.to_string());
            if file == "vocab.txt" {
                let mut fewer = tensors();
                fewer[0].1[0] = 3;
                write(folder.path(), "model.safetensors", safetensors(&fewer, "F32"));
            }
        }
        assert!(refusal(folder.path()).contains(file), "{key} {value}: {}", refusal(folder.path()));
    }
}

fn tokenizer(max_tokens: usize) -> (tempfile::TempDir, Tokenizer) {
    let folder = model();
    write(folder.path(), "sentence_bert_config.json", json!({"max_seq_length": max_tokens}).to_string());
    let config = Config::read(folder.path()).unwrap();
    let tokenizer = Tokenizer::read(folder.path(), &config).unwrap();
    (folder, tokenizer)
}

#[test]
fn texts_become_tokens() {
    let (_folder, tokenizer) = tokenizer(10);
    for (text, wanted) in [
        ("", &[][..]),
        ("  \t\n\u{a0}", &[]),
        ("SEND an\u{ad} e\u{301}mails", &[4, 5, 7, 6]),
        ("CAFÉ,café", &[8, 9, 8]),
        ("send日email", &[4, 13, 7]),
        ("sendx unknown", &[4, 15, 1]),
        ("x\u{200b}x\0x\u{fffd}x", &[14, 15, 15, 15]),
        // Text that spells a mark is text.
        ("[SEP]", &[10, 12, 11]),
        ("an an an an an an an an an an an an", &[5, 5, 5, 5, 5, 5, 5, 5]),
    ] {
        let all = [&[2], wanted, &[3]].concat();
        assert_eq!(tokenizer.tokens(text), all, "{text:?}");
    }
    let long = |count: usize| tokenizer.tokens(&"x".repeat(count));
    assert_eq!(long(100).len(), 10);
    assert_eq!(long(101), [2, 1, 3]);
    assert_eq!(long(1 << 20), [2, 1, 3]);
}

#[test]
fn the_product_is_the_product() {
    let left: Vec<f32> = (0..6).map(number).collect();
    let right: Vec<f32> = (0..12).map(number).collect();
    for (right, step) in
        [(Matrix::new(&right, 3, 4, 4), [4, 1]), (Matrix::new(&right, 4, 3, 3).transposed(), [1, 3])]
    {
        let mut to = vec![1.0; 2 * 5];
        multiply(2.0, Matrix::new(&left, 2, 3, 3), right, 0.5, &mut MatrixMut::new(&mut to, 2, 4, 5));
        for row in 0..2 {
            for column in 0..4 {
                let sum: f32 =
                    (0..3).map(|k| left[row * 3 + k] * number(k * step[0] + column * step[1])).sum();
                assert!((to[row * 5 + column] - (2.0 * sum + 0.5)).abs() < 1e-6);
            }
            assert!((to[row * 5 + 4] - 1.0).abs() < 1e-9, "what lies between rows is left alone");
        }
    }
}

#[test]
#[should_panic(expected = "cannot be multiplied")]
fn matrices_larger_than_their_numbers_are_not_multiplied() {
    let numbers = [0.0; 6];
    let mut to = [0.0; 4];
    let matrix = Matrix::new(&numbers, 2, 3, 4);
    multiply(1.0, matrix, matrix.transposed(), 0.0, &mut MatrixMut::new(&mut to, 2, 2, 2));
}

#[test]
fn numbers_are_what_they_should_be() {
    // Known values of the error function.
    for (at, wanted) in [(0.0, 0.0), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (2.0, 0.995_322_3), (9.0, 1.0)] {
        assert!((error_function(at) - wanted).abs() < 5e-7, "{at}");
        assert!((error_function(-at) + wanted).abs() < 5e-7, "-{at}");
    }
    assert!((gelu(1.0) - 0.841_344_8).abs() < 1e-6 && (gelu(-1.0) + 0.158_655_25).abs() < 1e-6);
    assert!(gelu(-30.0).abs() < 1e-6 && (gelu(30.0) - 30.0).abs() < 1e-6);
    let mut row = [1000.0, 1001.0, 999.0];
    softmax(&mut row);
    assert!((row[1] - 0.665_240_94).abs() < 1e-6 && (row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    let mut row = [1.0, 2.0, 3.0, 4.0];
    normalise(&mut row, &[2.0; 4], &[1.0; 4], 0.0);
    assert!((row[3] - (1.0 + 2.0 * 1.5 / 1.25_f32.sqrt())).abs() < 1e-6);
    let mut row = [0.0; 4];
    unit(&mut row);
    assert_eq!(row.map(f32::to_bits), [0; 4]);
}

#[test]
fn sixteen_bits_are_read_exactly() {
    for (bits, wanted) in [
        (0x0000, 0.0),
        (0x3c00, 1.0),
        (0xc000, -2.0),
        (0x7bff, 65504.0),
        (0x0001, 5.960_464_5e-8),
        (0x0400, 6.103_515_6e-5),
        (0x3555, 0.333_251_95),
        (0x7c00, f32::INFINITY),
        (0xfc00, f32::NEG_INFINITY),
    ] {
        assert_eq!(half(bits).to_bits(), wanted.to_bits(), "{bits:x}");
    }
    assert!(half(0x7e00).is_nan());
    assert_eq!(brain(0x3f80).to_bits(), 1.0_f32.to_bits());
    assert_eq!(brain(0xc049).to_bits(), (-3.140_625_f32).to_bits());
}
