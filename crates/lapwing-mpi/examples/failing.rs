//! Processes of which one does not go on, for `scripts/test-mpi`: `mpirun -n 3 failing panic|silence`.
//!
//! Whatever it is, the job must end: with `panic` the last rank panics while the others wait for it, with `silence` it
//! sleeps for longer than they wait.

use std::time::Duration;

use lapwing_core::Peers;
use lapwing_mpi::Mpi;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let how = std::env::args().nth(1).unwrap_or_default();
    let mpi = Mpi::start(None, Duration::from_secs(2))?;
    assert_eq!(mpi.gather(b"here")?.len(), mpi.count());
    if mpi.rank() + 1 == mpi.count() {
        match how.as_str() {
            "panic" => assert!(how.is_empty(), "this is what was asked for"),
            _ => std::thread::sleep(Duration::from_secs(60)),
        }
    }
    mpi.gather(b"still here")?;
    Ok(())
}
