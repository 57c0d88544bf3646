//! Matrices as views of slices, and the one product that everything else is made of.
#![expect(unsafe_code, reason = "the kernel takes pointers; every bound is checked right before")]

/// A matrix that is read: element (i, j) lies at `i * row_step + j * column_step`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    numbers: &'a [f32],
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
}

/// A matrix that is written, row after row.
pub(super) struct MatrixMut<'a> {
    numbers: &'a mut [f32],
    rows: usize,
    columns: usize,
    row_step: usize,
}

impl<'a> Matrix<'a> {
    /// Rows that start every `row_step` numbers.
    pub(super) fn new(numbers: &'a [f32], rows: usize, columns: usize, row_step: usize) -> Self {
        Self { numbers, rows, columns, row_step, column_step: 1 }
    }

    /// Rows as columns, without moving a number.
    pub(super) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    fn fits(&self) -> bool {
        fits(self.numbers.len(), self.rows, self.columns, self.row_step, self.column_step)
    }
}

impl<'a> MatrixMut<'a> {
    /// Rows that start every `row_step` numbers.
    pub(super) fn new(numbers: &'a mut [f32], rows: usize, columns: usize, row_step: usize) -> Self {
        Self { numbers, rows, columns, row_step }
    }

    fn fits(&self) -> bool {
        // Rows that overlapped would be written twice.
        self.row_step >= self.columns && fits(self.numbers.len(), self.rows, self.columns, self.row_step, 1)
    }
}

/// Whether the last element lies inside, and every step can be told to the kernel.
fn fits(length: usize, rows: usize, columns: usize, row_step: usize, column_step: usize) -> bool {
    let last = |count: usize, step: usize| count.checked_sub(1)?.checked_mul(step);
    let end = last(rows, row_step)
        .zip(last(columns, column_step))
        .and_then(|(row, column)| row.checked_add(column));
    let small = |step: usize| isize::try_from(step).is_ok();
    end.is_some_and(|end| end < length) && small(row_step) && small(column_step)
}

/// `to = factor * left * right + keep * to`. Shapes that do not fit each other or their slices are a mistake of the
/// caller, which leaves `to` as it is; shapes here come from the model, which was checked when it was read.
pub(super) fn multiply(factor: f32, left: Matrix<'_>, right: Matrix<'_>, keep: f32, to: &mut MatrixMut<'_>) {
    let agree = left.columns == right.rows && left.rows == to.rows && right.columns == to.columns;
    let fit = left.fits() && right.fits() && to.fits();
    debug_assert!(agree && fit, "matrices that cannot be multiplied");
    if !agree || !fit {
        return;
    }
    // `fits` says of all three that their last element, and so every element, lies inside their slice, and that casting
    // their steps loses nothing. `to` is borrowed alone, so it shares no number with the others; its rows do not overlap.
    // SAFETY: every element that the kernel reads or writes lies inside a slice that lives through the call, as said.
    unsafe {
        matrixmultiply::sgemm(
            left.rows,
            left.columns,
            right.columns,
            factor,
            left.numbers.as_ptr(),
            left.row_step.cast_signed(),
            left.column_step.cast_signed(),
            right.numbers.as_ptr(),
            right.row_step.cast_signed(),
            right.column_step.cast_signed(),
            keep,
            to.numbers.as_mut_ptr(),
            to.row_step.cast_signed(),
            1,
        );
    }
}
