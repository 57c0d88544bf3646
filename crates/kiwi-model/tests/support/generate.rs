//! Documents from a seed: the same on every machine, in every run.

use serde_json::{Map, Number, Value};

/// A deterministic source of documents (SplitMix64 underneath).
pub struct Generator(u64);

/// Where `repr` changes its form, where doubles themselves do, and where two shortest forms are equally near.
const FLOATS: [f64; 26] = [
    0.0,
    -0.0,
    1.0,
    0.1,
    1e15,
    1e16,
    1e17,
    9_999_999_999_999_998.0,
    1e-4,
    1e-5,
    9.999e-5,
    0.000_123,
    1e22,
    1e23,
    5e-324,
    2.225e-308,
    f64::MIN_POSITIVE,
    f64::MAX,
    f64::MIN,
    f64::EPSILON,
    9_007_199_254_740_993.0,
    4.35,
    123_456_789.125,
    1.5e300,
    1_000_000_000_000_000.2,
    1_125_899_906_893_347.2,
];
const INTEGERS: [i64; 12] = [
    0,
    1,
    -1,
    255,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
    (1 << 53) - 1,
    (1 << 53) + 1,
    -(1 << 53),
    i64::MAX,
    -i64::MAX,
];
/// Neighbours in UTF-16 that are far apart in code points, and the other way round; prefixes; controls; quotes.
const KEYS: [&str; 22] = [
    "",
    "a",
    "A",
    "aa",
    "a\u{0}",
    "a b",
    "ab",
    "é",
    "e\u{301}",
    "\u{7f}",
    "\u{80}",
    "\u{d7ff}",
    "\u{e000}",
    "\u{fb01}",
    "\u{ffff}",
    "\u{10000}",
    "\u{1f600}",
    "\u{10ffff}",
    "\"",
    "\\",
    "/",
    "\n",
];

impl Generator {
    /// A source with its own sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits() % u64::try_from(end).expect("small")).expect("small")
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A document; now and then one that is mostly depth.
    pub fn document(&mut self) -> Value {
        if self.below(50) == 0 {
            let depth = 20 + self.below(80);
            return (0..depth).fold(self.scalar(), |inner, _| {
                if self.below(2) == 0 { Value::Array(vec![inner]) } else { self.around(inner) }
            });
        }
        self.value(4)
    }

    /// A map that a manifest could be.
    pub fn map(&mut self) -> Value {
        Value::Object((0..=self.below(8)).map(|_| (self.key(), self.value(3))).collect())
    }

    fn around(&mut self, inner: Value) -> Value {
        Value::Object(Map::from_iter([(self.key(), inner)]))
    }

    fn value(&mut self, depth: usize) -> Value {
        match if depth == 0 { 9 } else { self.below(10) } {
            0..=1 => Value::Array((0..self.below(6)).map(|_| self.value(depth - 1)).collect()),
            2..=4 => Value::Object((0..self.below(8)).map(|_| (self.key(), self.value(depth - 1))).collect()),
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Value {
        match self.below(12) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => Value::from(self.pick(&INTEGERS)),
            3..=4 => Value::from(self.integer()),
            5..=8 => Number::from_f64(self.float()).map_or(Value::Null, Value::Number),
            _ => Value::String(self.text()),
        }
    }

    /// Every number of bits alike, never `i64::MIN`.
    fn integer(&mut self) -> i64 {
        let magnitude = i64::try_from(self.bits() >> 1 >> self.below(63)).expect("63 bits");
        if self.below(2) == 0 { magnitude } else { -magnitude }
    }

    fn float(&mut self) -> f64 {
        match self.below(6) {
            0 => self.pick(&FLOATS),
            // Any bits: every magnitude alike, subnormals and the like included.
            1..=2 => Some(f64::from_bits(self.bits())).filter(|float| float.is_finite()).unwrap_or(0.5),
            // Few digits at every power of ten.
            3 => {
                let digits = 1 + self.below(999);
                format!("{digits}e{}", i32::try_from(self.below(640)).expect("small") - 330)
                    .parse()
                    .unwrap_or(0.5)
            }
            // A step or two beside a power of ten, where the form changes.
            4 => {
                let power: f64 = format!("1e{}", i32::try_from(self.below(44)).expect("small") - 22)
                    .parse()
                    .expect("a float");
                f64::from_bits((power.to_bits() + self.bits() % 5) - 2)
            }
            _ => f64::from_bits(f64::MIN_POSITIVE.to_bits() - 1 - self.bits() % (1 << 51)),
        }
    }

    fn key(&mut self) -> String {
        match self.below(4) {
            0..=1 => self.pick(&KEYS).to_owned(),
            2 => format!("{}{}", self.pick(&KEYS), self.pick(&KEYS)),
            _ => self.text(),
        }
    }

    /// Text of any characters, or a short plain word.
    pub fn text(&mut self) -> String {
        (0..self.below(9)).map(|_| self.character()).collect()
    }

    fn character(&mut self) -> char {
        let bits = u32::try_from(self.bits() >> 32).expect("32 bits");
        let code = match self.below(8) {
            0..=2 => 0x20 + bits % 0x5f,
            3 => bits % 0x20,
            4 => 0x7f + bits % 0x180,
            5 => bits % 0x1_0000,
            6 => 0x1_0000 + bits % 0x10_0000,
            _ => self.pick(&[
                0x22, 0x5c, 0x2f, 0x7f, 0x85, 0x2028, 0x2029, 0xd7ff, 0xe000, 0xfeff, 0xffff, 0x1_f600,
            ]),
        };
        char::from_u32(code).unwrap_or('\u{fffd}')
    }

    /// The document as JSON text in one of its many spellings: keys in any order, escapes here and there, spaces, the
    /// exponent written out.
    pub fn spell(&mut self, value: &Value) -> String {
        match value {
            Value::String(text) => self.quote(text),
            Value::Number(number) if number.is_f64() => self.spell_float(number.as_f64().expect("a float")),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.spell(item)).collect();
                format!("[{}]", items.join(self.pick(&[",", ", ", " ,"])))
            }
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                for i in (1..entries.len()).rev() {
                    entries.swap(i, self.below(i + 1));
                }
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(key, item)| format!("{}:{}", self.quote(key), self.spell(item)))
                    .collect();
                format!("{{{}}}", entries.join(self.pick(&[",", ",\t", " , "])))
            }
            other => other.to_string(),
        }
    }

    fn spell_float(&mut self, float: f64) -> String {
        match self.below(3) {
            0 => format!("{float:e}"),
            1 => format!("{float:.25E}"),
            _ => format!("{float:?}"),
        }
    }

    fn quote(&mut self, text: &str) -> String {
        let mut out = String::from('"');
        for c in text.chars() {
            if c < ' ' || c == '"' || c == '\\' || self.below(4) == 0 {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let digits = format!("{unit:04x}");
                    out.push_str("\\u");
                    out.push_str(&if self.below(2) == 0 { digits } else { digits.to_uppercase() });
                }
            } else {
                out.push(c);
            }
        }
        out.push('"');
        out
    }
}
