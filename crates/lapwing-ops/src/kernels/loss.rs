//! Cross-entropy, one row at a time.

/// The loss of each row of `logits` against its class, and the softmax of each row, which the gradient needs.
pub(crate) fn cross_entropy(
    logits: &[f32],
    columns: usize,
    classes: &[usize],
) -> (Vec<f32>, Vec<f32>) {
    assert_eq!(logits.len(), columns * classes.len(), "one class for each row");
    let mut softmax = logits.to_vec();
    let losses = classes
        .iter()
        .enumerate()
        .map(|(row, &class)| {
            assert!(class < columns, "class {class} of {columns}");
            let row = &mut softmax[row * columns..][..columns];
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let own = row[class] - largest;
            let mut sum = 0.0;
            for value in row.iter_mut() {
                *value = (*value - largest).exp();
                sum += *value;
            }
            for value in row.iter_mut() {
                *value /= sum;
            }
            sum.ln() - own
        })
        .collect();
    (losses, softmax)
}

/// Turns the softmax of each row into the gradient of its logits.
pub(crate) fn backward(softmax: &mut [f32], columns: usize, classes: &[usize], gradient: &[f32]) {
    for ((row, &class), gradient) in
        softmax.chunks_exact_mut(columns.max(1)).zip(classes).zip(gradient)
    {
        row[class] -= 1.0;
        for value in row {
            *value *= gradient;
        }
    }
}
