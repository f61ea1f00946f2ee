//! The processes of a training: this one, or those that a launcher started together.

use std::cell::Cell;
use std::fmt;

use lapwing_core::{Alone, Peers};
use lapwing_ops::Level;

use crate::failure::with_causes;
use crate::launcher::Launched;

/// Seconds for which others may be silent, unless `LAPWING_MPI_PATIENCE` says otherwise.
#[cfg(feature = "mpi")]
const PATIENCE: u64 = 600;

/// This process and the others.
#[derive(Debug)]
pub(crate) struct Team {
    /// Whether all have agreed to end.
    together: Cell<bool>,
    #[cfg(feature = "mpi")]
    mpi: Option<lapwing_mpi::Mpi>,
}

/// That the first process says what there is to say, and ends with the code of all: a launcher ends the others, and what
/// they still have to say, where one that is not the first ends with anything but 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said;

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the first process says why")
    }
}

impl std::error::Error for Said {}

/// What a process says of something that all did.
const DONE: u8 = 0;
const FAILED: u8 = 1;

impl Team {
    /// Whoever was started together with this process.
    pub(crate) fn find() -> anyhow::Result<Self> {
        match Launched::by(|name| std::env::var(name).ok()) {
            None => Ok(Self::alone()),
            Some(launched) => Self::launched(launched),
        }
    }

    #[cfg(not(feature = "mpi"))]
    fn alone() -> Self {
        Self { together: Cell::new(false) }
    }

    /// One process started by a launcher is one process; several would write into one directory.
    #[cfg(not(feature = "mpi"))]
    fn launched(launched: Launched) -> anyhow::Result<Self> {
        match launched.count {
            Some(count @ 2..) => anyhow::bail!(
                "started {count} times together, but this program was built without MPI \
                 (cargo build --release -p lapwing --features mpi)"
            ),
            _ => Ok(Self::alone()),
        }
    }

    #[cfg(feature = "mpi")]
    fn alone() -> Self {
        Self { together: Cell::new(false), mpi: None }
    }

    #[cfg(feature = "mpi")]
    fn launched(launched: Launched) -> anyhow::Result<Self> {
        anyhow::ensure!(
            launched.mpi,
            "started {} times by srun, without a way for them to find each other: srun --mpi=pmix lapwing train …",
            launched.count.unwrap_or_default()
        );
        let patience = match std::env::var("LAPWING_MPI_PATIENCE") {
            Err(_) => PATIENCE,
            Ok(text) => match text.parse() {
                Ok(seconds @ 1..) => seconds,
                _ => anyhow::bail!("LAPWING_MPI_PATIENCE={text:?}: expected a number of seconds"),
            },
        };
        let patience = std::time::Duration::from_secs(patience);
        let mpi = Some(lapwing_mpi::Mpi::start(launched.count, patience)?);
        Ok(Self { together: Cell::new(false), mpi })
    }

    /// The processes.
    pub(crate) fn peers(&self) -> &dyn Peers {
        #[cfg(feature = "mpi")]
        if let Some(mpi) = &self.mpi {
            return mpi;
        }
        &Alone
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.peers().count()
    }

    /// Whether this is the one that writes and speaks.
    pub(crate) fn leads(&self) -> bool {
        self.peers().rank() == 0
    }

    /// Processes on this machine.
    pub(crate) fn local(&self) -> usize {
        #[cfg(feature = "mpi")]
        if let Some(mpi) = &self.mpi {
            return mpi.local();
        }
        1
    }

    /// Seconds spent in exchanges.
    pub(crate) fn talked(&self) -> f64 {
        #[cfg(feature = "mpi")]
        if let Some(mpi) = &self.mpi {
            return mpi.talked().as_secs_f64();
        }
        0.0
    }

    /// Which one this is, and where.
    fn name(&self) -> String {
        let (rank, count) = (self.peers().rank(), self.count());
        #[cfg(feature = "mpi")]
        if let Some(mpi) = &self.mpi {
            return format!("rank {rank} of {count} on {}", mpi.host());
        }
        format!("rank {rank} of {count}")
    }

    /// What this process has done, if all others have done theirs. Otherwise all end here: the first with an error, its
    /// own or that of the first one that has one, the others with [`Said`].
    pub(crate) fn agree<T>(&self, own: anyhow::Result<T>) -> anyhow::Result<T> {
        if self.count() == 1 {
            return own;
        }
        let said = match &own {
            Ok(_) => vec![DONE],
            Err(error) => {
                let text = format!("{}: {}", self.name(), with_causes(error));
                [&[FAILED], text.as_bytes()].concat()
            }
        };
        let all = self.peers().gather(&said)?;
        self.together.set(all.iter().any(|said| said.first() != Some(&DONE)));
        match all.iter().find(|said| said.first() != Some(&DONE)) {
            None => own,
            Some(_) if !self.leads() => Err(Said.into()),
            Some(said) => {
                own?;
                let text = said.get(1..).unwrap_or_default();
                anyhow::bail!("{}", String::from_utf8_lossy(text))
            }
        }
    }

    /// What the first process says, on all of them.
    pub(crate) fn told(
        &self,
        lead: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<String> {
        let own = if self.leads() { lead() } else { Ok(String::new()) };
        let own = self.agree(own)?;
        if self.count() == 1 {
            return Ok(own);
        }
        let said = self.peers().gather(own.as_bytes())?.swap_remove(0);
        Ok(String::from_utf8(said)?)
    }

    /// Makes all compute with the kernels of the least able machine: others round otherwise.
    pub(crate) fn share_kernels(&self) -> anyhow::Result<()> {
        if self.count() == 1 {
            return Ok(());
        }
        let all = self.peers().gather(Level::current().name().as_bytes())?;
        let levels = all.iter().map(|name| String::from_utf8_lossy(name).parse::<Level>());
        let levels = levels.collect::<Result<Vec<_>, _>>()?;
        let place = |level: &Level| Level::ALL.iter().position(|other| other == level);
        // Every machine of an architecture has the lower ones, but ARM and Intel have only the last in common.
        let architectures = [Level::Neon, Level::Avx2].map(|level| {
            let others = |other: &Level| (*other == Level::Neon) == (level == Level::Neon);
            levels.iter().any(|other| *other != Level::Portable && others(other))
        });
        let least = match architectures {
            [true, true] => Some(Level::Portable),
            _ => levels.iter().copied().max_by_key(place),
        };
        self.agree(Level::force(least).map_err(Into::into))
    }

    /// All end as they have agreed to.
    pub(crate) fn together(&self) {
        self.together.set(true);
    }

    /// How this process ends. An end that the others do not expect is that of all of them.
    pub(crate) fn end(&self, ended: anyhow::Result<()>) -> anyhow::Result<()> {
        #[cfg(feature = "mpi")]
        if let Some(mpi) = self.mpi.as_ref().filter(|mpi| mpi.count() > 1 && !self.together.get()) {
            return ended.map_err(|error| {
                let named = error.context(format!("{} failed", self.name()));
                let code = crate::failure::exit_code(Err(named), crate::failure::Stage::Training);
                mpi.abort(code.into())
            });
        }
        ended
    }
}
