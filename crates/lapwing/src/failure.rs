//! How the program ends.

use std::io;
use std::process::ExitCode;

use lapwing_data::DataError;

/// 0 when all went well, 2 with a message on stderr when it did not.
pub(crate) fn exit_code(done: anyhow::Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    // `lapwing … | head` has seen enough: that is no failure.
    if is_broken_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: {error:#}");
    if let Some(advice) = error.downcast_ref().and_then(advice) {
        eprintln!("{advice}");
    }
    ExitCode::from(2)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io_error = match cause.downcast_ref::<csv::Error>().map(csv::Error::kind) {
            Some(csv::ErrorKind::Io(error)) => Some(error),
            _ => cause.downcast_ref::<io::Error>(),
        };
        io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// What to do next, where the message does not say so itself.
fn advice(error: &DataError) -> Option<&'static str> {
    match error {
        DataError::MissingColumn { .. } => {
            Some("hint: options such as --source say which column is which")
        }
        DataError::RecordTooLong { .. } => Some("hint: look for a quote that is never closed"),
        DataError::Truncated { .. } => Some("hint: copy or download the file again"),
        _ => None,
    }
}
