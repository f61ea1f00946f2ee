//! How long trees take: what `scripts/trees` times beside LightGBM.
//!
//! ```text
//! cargo run --release -p lapwing-trees --example speed -- FILE ROWS COLUMNS SOURCES ROUNDS TEST
//! ```
//!
//! FILE holds ROWS × COLUMNS numbers (f32, little-endian), then a target per row (f32), then its source (u32, below
//! SOURCES). All rows but the last TEST are trained on. Prints a JSON object: seconds, those of the rounds in which sources
//! are judged, the squared error on the last rows, the lowest weight and the most memory in megabytes.

use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;

use lapwing_sample::{Data, Loss, Matrix, Predictions, Targets};
use lapwing_trees::{Say, TreesConfig, boost};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, sizes @ ..] = words.as_slice() else { return Err("see the first lines".into()) };
    let sizes: Vec<usize> = sizes.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
    let &[rows, columns, sources, rounds, test] = sizes.as_slice() else {
        return Err("expected FILE ROWS COLUMNS SOURCES ROUNDS TEST".into());
    };
    let bytes = std::fs::read(file)?;
    let words: Vec<[u8; 4]> = bytes.as_chunks().0.to_vec();
    drop(bytes);
    if words.len() != rows * (columns + 2) || test >= rows {
        return Err(format!("{} numbers are not {rows} rows", words.len()).into());
    }
    let (numbers, rest) = words.split_at(rows * columns);
    let (values, from) = rest.split_at(rows);
    let samples = Matrix::new(numbers.iter().map(|&w| f32::from_le_bytes(w)).collect(), columns)?;
    let truth: Vec<f64> = values.iter().map(|&w| f32::from_le_bytes(w).into()).collect();
    let from: Vec<u32> = from.iter().map(|&w| u32::from_le_bytes(w)).collect();
    drop(words);

    let (train, test): (Vec<u32>, Vec<u32>) =
        (0..rows as u32).partition(|&row| (row as usize) < rows - test);
    let targets = Targets::Values(truth.clone());
    let data = Data {
        samples: &samples,
        targets: &targets,
        sources: &from,
        train: &train,
        valid: &[],
        relabel: None,
        items: None,
    };
    let say = vec![Say::Rule { floor: 0.0 }; sources];
    let config =
        TreesConfig { rounds, ..TreesConfig::new(Loss::SquaredError, vec![false; columns], say) };
    let begun = Instant::now();
    let mut rehearsed = 0.0;
    let grown = boost(&config, &data, &mut |round| {
        if round.rehearsal {
            rehearsed = begun.elapsed().as_secs_f64();
        }
        ControlFlow::Continue(())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let grown = grown.ok_or("nobody broke off")?;
    let Predictions::Values(said) = grown.forest.predict(&samples, &test)? else {
        return Err("expected values".into());
    };
    let errors = said.iter().zip(&test).map(|(said, &row)| (said - truth[row as usize]).powi(2));
    let mse = errors.sum::<f64>() / test.len().max(1) as f64;
    let lowest = grown.weights.iter().copied().fold(1.0, f64::min);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
    let most = most.and_then(|kilobytes| kilobytes.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0;
    let object = serde_json::json!({
        "seconds": seconds, "rehearsal": rehearsed, "mse": mse, "lowest": lowest, "megabytes": most,
    });
    #[allow(clippy::print_stdout, reason = "what it is for")]
    {
        println!("{object}");
    }
    Ok(())
}
