//! Vectors as bytes: each number in 255 steps of a scale that the row has of its own.

const STEPS: f32 = 127.0;
/// The scale comes first.
const SCALE: usize = 4;

/// Bytes of a row.
pub(crate) const fn row_bytes(dimensions: usize) -> usize {
    SCALE + dimensions
}

/// A vector as a row.
pub(crate) fn pack(vector: &[f32]) -> Vec<u8> {
    let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let scale = if largest.is_finite() { largest / STEPS } else { 0.0 };
    let mut row = scale.to_le_bytes().to_vec();
    let step = |number: &f32| {
        #[expect(clippy::cast_possible_truncation, reason = "between -127 and 127; not a number becomes 0")]
        let step = if scale > 0.0 { (number / scale).round() as i8 } else { 0 };
        step.to_le_bytes()
    };
    row.extend(vector.iter().flat_map(step));
    row
}

/// How alike a query and a row are: their dot product. `None` for a row that is too short or says nothing. It becomes part of
/// its callers, which are compiled for their processors.
#[inline(always)]
pub(super) fn likeness(query: &[f32], row: &[u8]) -> Option<f32> {
    const LANES: usize = 16;
    let (scale, steps) = row.split_first_chunk::<SCALE>()?;
    let scale = f32::from_le_bytes(*scale);
    if scale == 0.0 || steps.len() != query.len() {
        return None;
    }
    let mut lanes = [0.0_f32; LANES];
    let (wide_query, rest_query) = query.as_chunks::<LANES>();
    let (wide_steps, rest_steps) = steps.as_chunks::<LANES>();
    for (numbers, steps) in wide_query.iter().zip(wide_steps) {
        for ((lane, number), step) in lanes.iter_mut().zip(numbers).zip(steps) {
            *lane += number * f32::from(step.cast_signed());
        }
    }
    let mut sum = 0.0;
    for (number, step) in rest_query.iter().zip(rest_steps) {
        sum += number * f32::from(step.cast_signed());
    }
    for lane in lanes {
        sum += lane;
    }
    Some(sum * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_nearly_its_vector() {
        let vector: Vec<f32> = (0..70_u16).map(|at| (f32::from(at) * 0.37).sin() / 6.0).collect();
        let row = pack(&vector);
        assert_eq!(row.len(), row_bytes(70));
        let length: f32 = vector.iter().map(|number| number * number).sum();
        let like = likeness(&vector, &row).unwrap();
        assert!((like - length).abs() < 0.003, "{like} {length}");
    }

    #[test]
    fn nothing_is_like_nothing() {
        assert_eq!(likeness(&[1.0, 0.0], &pack(&[0.0, 0.0])), None);
        assert_eq!(likeness(&[1.0], &pack(&[f32::NAN])), None);
        assert_eq!(likeness(&[1.0, 0.0], &pack(&[1.0])), None);
        assert_eq!(likeness(&[1.0], &[]), None);
    }
}
