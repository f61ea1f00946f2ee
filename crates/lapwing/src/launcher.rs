//! Whether somebody has started this program several times over, as one job.

/// What launchers tell the processes that they start: their number and, of some, how many there are.
const VARIABLES: [(&str, Option<&str>); 3] = [
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("PMI_RANK", Some("PMI_SIZE")),
    // Slurm with PMIx; of its own variables, the one that only `srun` sets.
    ("PMIX_RANK", Some("SLURM_STEP_NUM_TASKS")),
];

/// Processes that were started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launched {
    /// How many there are, where the launcher says so.
    pub(crate) count: Option<usize>,
    /// Whether they can find each other by MPI.
    pub(crate) mpi: bool,
}

impl Launched {
    /// By the variables of the environment.
    pub(crate) fn by(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
        for (rank, count) in VARIABLES {
            if number(rank).is_some() {
                return Some(Self { count: count.and_then(number), mpi: true });
            }
        }
        // `srun` without a way for the processes to find each other.
        let count = number("SLURM_STEP_NUM_TASKS").filter(|&count| count > 1)?;
        Some(Self { count: Some(count), mpi: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(variables: &[(&str, &str)]) -> Option<Launched> {
        Launched::by(|name| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let launched = |count, mpi| Some(Launched { count, mpi });
        assert_eq!(by(&[]), None);
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(by(&open_mpi), launched(Some(4), true));
        assert_eq!(by(&[("PMI_RANK", "0"), ("PMI_SIZE", "3")]), launched(Some(3), true));
        let slurm = [("PMIX_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_NTASKS", "8")];
        assert_eq!(by(&slurm), launched(Some(2), true));
        assert_eq!(by(&[("PMIX_RANK", "0")]), launched(None, true));
        // A script of `sbatch` has the number of its tasks, and is one process.
        assert_eq!(by(&[("SLURM_NTASKS", "8")]), None);
        assert_eq!(by(&[("SLURM_STEP_NUM_TASKS", "1")]), None);
        assert_eq!(by(&[("SLURM_STEP_NUM_TASKS", "2")]), launched(Some(2), false));
        assert_eq!(by(&[("PMI_RANK", "what?")]), None);
    }
}
