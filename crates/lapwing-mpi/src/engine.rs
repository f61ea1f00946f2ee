//! The processes of MPI as peers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lapwing_core::{PeerError, Peers};
use mpi::Count;
use mpi::Threading;
use mpi::datatype::{Equivalence, Partition, PartitionMut};
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};
use thiserror::Error;

use crate::watchdog::{Watchdog, tell};

/// Exit code of a job in which a process panicked: that of a Rust program.
const PANICKED: i32 = 101;

/// One process of a job.
pub struct Mpi {
    rank: usize,
    count: usize,
    local: usize,
    host: String,
    watchdog: Watchdog,
    /// Nanoseconds spent in exchanges.
    talked: AtomicU64,
    /// Its end is that of MPI, which waits for everybody.
    _universe: Universe,
}

/// Why there are no workers.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MpiError {
    /// MPI was started before.
    #[error("MPI is running already")]
    Running,
    /// A launcher of another MPI: every process thinks that it is alone.
    #[error(
        "the launcher started {launched} processes, and MPI knows of {found}: this program was built with another MPI \
         than that of the launcher (mpirun of Open MPI or of MPICH; with Slurm, srun --mpi=pmix or --mpi=pmi2)"
    )]
    Launcher {
        /// Processes by the launcher's word.
        launched: usize,
        /// Processes by MPI's.
        found: usize,
    },
}

impl Mpi {
    /// Starts MPI in this process. `launched` is how many processes there are by the launcher's word, where it says so.
    /// Nobody may be silent for longer than `patience` while this process waits.
    ///
    /// # Errors
    /// Where MPI is running, or does not know of the others.
    pub fn start(launched: Option<usize>, patience: Duration) -> Result<Self, MpiError> {
        // Exchanges are made by the thread that trains; the watchdog and a panic end the job from others.
        let (universe, _) =
            mpi::initialize_with_threading(Threading::Serialized).ok_or(MpiError::Running)?;
        let world = universe.world();
        let (rank, count) = (world.rank() as usize, world.size() as usize);
        if let Some(launched) = launched.filter(|&launched| launched != count) {
            return Err(MpiError::Launcher { launched, found: count });
        }
        let host = mpi::environment::processor_name().unwrap_or_else(|_| "a host".to_owned());
        let local = world.split_shared(world.rank()).size() as usize;
        let name = format!("rank {rank} of {count} on {host}");
        end_all_with_a_panic(name.clone());
        let watchdog = Watchdog::start(name, patience);
        let talked = AtomicU64::new(0);
        Ok(Self { rank, count, local, host, watchdog, talked, _universe: universe })
    }

    /// Processes on this machine, this one included.
    pub fn local(&self) -> usize {
        self.local
    }

    /// The machine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Time spent in exchanges, most of it waiting for others.
    pub fn talked(&self) -> Duration {
        Duration::from_nanos(self.talked.load(Ordering::Relaxed))
    }

    /// Ends all processes of the job.
    pub fn abort(&self, code: i32) -> ! {
        SimpleCommunicator::world().abort(code)
    }

    /// An exchange, under the eye of the watchdog.
    fn exchange<T>(&self, exchange: impl FnOnce(&SimpleCommunicator) -> T) -> T {
        let begin = Instant::now();
        let watched = self.watchdog.watch();
        let result = exchange(&SimpleCommunicator::world());
        drop(watched);
        let spent = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.talked.fetch_add(spent, Ordering::Relaxed);
        result
    }

    /// A number of things as MPI counts them.
    fn counted(&self, number: usize) -> Result<Count, PeerError> {
        let most = Count::MAX as usize;
        let too_many = PeerError::Length { rank: self.rank, found: number, expected: most };
        Count::try_from(number).map_err(|_| too_many)
    }

    /// Everybody's numbers one after another, and how many of them are whose.
    fn all<T: Equivalence + Clone + Default>(
        &self,
        own: &[T],
    ) -> Result<(Vec<T>, Vec<Count>), PeerError> {
        let length = self.counted(own.len())?;
        let mut counts = vec![0; self.count];
        self.exchange(|world| world.all_gather_into(&length, &mut counts[..]));
        let (places, total) = self.places(&counts)?;
        // Where nothing is, Rust's pointers have a value that means something else to Open MPI.
        let nothing = [T::default()];
        let own = if own.is_empty() { &nothing[..0] } else { own };
        let mut all = vec![T::default(); total];
        if total == 0 {
            return Ok((all, counts));
        }
        self.exchange(|world| {
            let mut into = PartitionMut::new(&mut all[..], &counts[..], &places[..]);
            world.all_gather_varcount_into(own, &mut into);
        });
        Ok((all, counts))
    }

    /// Where parts of these lengths begin, and their sum.
    fn places(&self, counts: &[Count]) -> Result<(Vec<Count>, usize), PeerError> {
        let mut sum = 0;
        let mut places = Vec::with_capacity(counts.len());
        for &count in counts {
            places.push(self.counted(sum)?);
            sum += usize::try_from(count).unwrap_or_default();
        }
        self.counted(sum)?;
        Ok((places, sum))
    }
}

impl Peers for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.count
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, PeerError> {
        let (all, counts) = self.all(own)?;
        Ok(parts(&all, &counts))
    }

    fn scatter(&self, parts_for: &[&[f32]]) -> Result<Vec<Vec<f32>>, PeerError> {
        let (rank, found, expected) = (self.rank, parts_for.len(), self.count);
        if found != expected {
            return Err(PeerError::Length { rank, found, expected });
        }
        let counts: Vec<Count> =
            parts_for.iter().map(|part| self.counted(part.len())).collect::<Result<_, _>>()?;
        let (places, _) = self.places(&counts)?;
        let mut theirs = vec![0; self.count];
        self.exchange(|world| world.all_to_all_into(&counts[..], &mut theirs[..]));
        let (their_places, total) = self.places(&theirs)?;
        let (own, mut all) = (parts_for.concat(), vec![0.0f32; total]);
        self.exchange(|world| {
            let from = Partition::new(&own[..], &counts[..], &places[..]);
            let mut into = PartitionMut::new(&mut all[..], &theirs[..], &their_places[..]);
            world.all_to_all_varcount_into(&from, &mut into);
        });
        Ok(parts(&all, &theirs))
    }

    fn join(&self, slice: &[f32], whole: &mut [f32]) -> Result<(), PeerError> {
        let (all, _) = self.all(slice)?;
        if all.len() != whole.len() {
            let (rank, found, expected) = (self.rank, all.len(), whole.len());
            return Err(PeerError::Length { rank, found, expected });
        }
        whole.copy_from_slice(&all);
        Ok(())
    }
}

/// What is whose.
fn parts<T: Clone>(all: &[T], counts: &[Count]) -> Vec<Vec<T>> {
    let mut rest = all;
    let part = |&count: &Count| {
        let (part, behind) = rest.split_at(usize::try_from(count).unwrap_or_default());
        rest = behind;
        part.to_vec()
    };
    counts.iter().map(part).collect()
}

/// Unwinding would end in MPI's own end, which waits for the others, who wait for this one.
fn end_all_with_a_panic(name: String) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        tell(&format!("error: {name} panicked: this ends all of them"));
        SimpleCommunicator::world().abort(PANICKED)
    }));
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, count, host, .. } = self;
        f.debug_struct("Mpi")
            .field("rank", rank)
            .field("count", count)
            .field("host", host)
            .finish_non_exhaustive()
    }
}
