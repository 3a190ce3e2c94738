//! What launchers tell a process through its environment.

use std::collections::BTreeMap;

/// The launcher's variables, as they are: which rank of how many this process is, and where the
/// ranks meet. [`Communicator::from_env`](crate::Communicator::from_env) reads them.
#[derive(Clone, Debug, Default)]
pub struct Launch(BTreeMap<&'static str, String>);

/// Every variable that is kept.
const VARIABLES: [&str; 24] = [
    "MASTER_ADDR",
    "MASTER_PORT",
    "MPI_LOCALNRANKS",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_MCA_ess_base_jobid",
    "PMIX_NAMESPACE",
    "PMI_RANK",
    "PMI_SIZE",
    "RANK",
    "RANK_ID",
    "RANK_SIZE",
    "RANK_TABLE_FILE",
    "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "SLURM_STEP_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_TASKS",
    "TORCHELASTIC_RUN_ID",
    "TUTTI_ID",
    "WORLD_SIZE",
];

/// A family of launchers, by the variables in which it tells rank and size.
pub(crate) struct Launcher {
    pub(crate) rank: &'static str,
    pub(crate) size: &'static str,
    /// How many of the ranks are on this host.
    pub(crate) local_size: &'static str,
}

/// `tutti run`, torchrun and hand-made scripts.
const PLAIN: Launcher = Launcher { rank: "RANK", size: "WORLD_SIZE", local_size: "" };

/// A rank table, which tells the size; `RANK_SIZE` may repeat it.
const RANK_TABLE: Launcher = Launcher { rank: "RANK_ID", size: "RANK_SIZE", local_size: "" };

/// Open MPI.
const OPEN_MPI: Launcher = Launcher {
    rank: "OMPI_COMM_WORLD_RANK",
    size: "OMPI_COMM_WORLD_SIZE",
    local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
};

/// Hydra, the launcher of MPICH and Intel MPI.
const PMI: Launcher =
    Launcher { rank: "PMI_RANK", size: "PMI_SIZE", local_size: "MPI_LOCALNRANKS" };

/// `srun`.
const SLURM: Launcher =
    Launcher { rank: "SLURM_PROCID", size: "SLURM_STEP_NUM_TASKS", local_size: "" };

/// Step ids from here on are Slurm's own: a batch script, a shell in an allocation.
const SLURM_OWN_STEPS: u32 = 0xffff_fff0;

impl Launch {
    /// Keeps the variable if it is a launcher's; whether it is.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> bool {
        let known = VARIABLES.iter().find(|known| **known == name);
        known.map(|known| self.0.insert(known, value.to_string())).is_some()
    }

    /// The variable's value, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether this process is a rank of a job that a launcher started.
    pub fn is_launched(&self) -> bool {
        self.launcher().is_some() || self.get("TUTTI_ID").is_some()
    }

    /// Who started this process, if anyone: the first in the order of precedence that set a rank
    /// or a size.
    pub(crate) fn launcher(&self) -> Option<Launcher> {
        let named =
            |known: &Launcher| self.get(known.rank).is_some() || self.get(known.size).is_some();
        let slurm = self.is_slurm_task().then(|| self.slurm());
        let table = self.rank_table().map(|_| RANK_TABLE);
        let plain = [PLAIN].into_iter().find(named).or(table);
        plain.or_else(|| [OPEN_MPI, PMI].into_iter().find(named)).or(slurm)
    }

    /// The file of a rank table, if this process is one of its ranks.
    pub(crate) fn rank_table(&self) -> Option<&str> {
        self.get("RANK_TABLE_FILE").filter(|_| self.get(RANK_TABLE.rank).is_some())
    }

    /// `srun` as it names the size: old versions do so in `SLURM_NTASKS` only.
    fn slurm(&self) -> Launcher {
        let size = if self.get(SLURM.size).is_some() { SLURM.size } else { "SLURM_NTASKS" };
        Launcher { size, ..SLURM }
    }

    /// Whether `srun` started this process, or one above it. A batch script has a rank as well,
    /// but no step: what it starts without `srun` is no task.
    fn is_slurm_task(&self) -> bool {
        let own = |id: &str| id.parse().is_ok_and(|id: u32| id >= SLURM_OWN_STEPS);
        self.get(SLURM.rank).is_some() && self.get("SLURM_STEP_ID").is_some_and(|id| !own(id))
    }

    /// Whether the tasks of the Slurm step are the ranks, and not the daemons of another launcher.
    pub(crate) fn ranks_are_slurm_tasks(&self, rank: u32, size: u32) -> bool {
        let is = |name: &str, value: u32| {
            self.get(name).and_then(|text| text.parse().ok()) == Some(value)
        };
        self.is_slurm_task() && is(SLURM.rank, rank) && is(self.slurm().size, size)
    }

    /// Complaints about launchers that tell different things.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let Some(used) = self.launcher() else { return self.lonely_batch_script() };
        // The ranks of these launchers are not those of whatever started the launcher.
        if self.get("TORCHELASTIC_RUN_ID").or(self.get("TUTTI_ID")).is_some() {
            return Vec::new();
        }
        let mut others: Vec<Launcher> = [RANK_TABLE, OPEN_MPI, PMI]
            .into_iter()
            .filter(|other| other.rank != used.rank)
            .collect();
        // Beneath mpirun, Slurm's tasks are the daemons of mpirun.
        let beneath_mpirun = [OPEN_MPI, PMI].iter().any(|mpi| self.get(mpi.rank).is_some());
        if self.is_slurm_task() && !beneath_mpirun && used.rank != SLURM.rank {
            others.push(self.slurm());
        }
        let pairs = others.iter().flat_map(|o| [(used.rank, o.rank), (used.size, o.size)]);
        pairs.filter_map(|(used, other)| self.disagreement(used, other)).collect()
    }

    fn disagreement(&self, used: &str, other: &str) -> Option<String> {
        let (mine, theirs) = (self.get(used)?, self.get(other)?);
        (mine != theirs)
            .then(|| format!("{used}={mine} and {other}={theirs} disagree; {used} is used"))
    }

    fn lonely_batch_script(&self) -> Vec<String> {
        let tasks = self.get("SLURM_NTASKS").filter(|tasks| *tasks != "1");
        let alone = tasks.filter(|_| self.get(SLURM.rank).is_some());
        let text = |tasks| {
            format!(
                "SLURM_NTASKS={tasks}, but this process was not started by srun and runs as a group \
                 of one; start it with srun, mpirun or tutti run"
            )
        };
        alone.map(text).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn read(vars: &str) -> Config {
        let pair = |word: &str| word.split_once('=').map(|(n, v)| (n.to_string(), v.to_string()));
        Config::from_vars(vars.split_whitespace().filter_map(pair)).unwrap()
    }

    fn rank_variable(vars: &str) -> Option<&'static str> {
        read(vars).launch.launcher().map(|launcher| launcher.rank)
    }

    #[test]
    fn the_nearest_launcher_is_believed() {
        let slurm = "SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_ID=0";
        let pmi = format!("PMI_RANK=2 PMI_SIZE=4 {slurm}");
        let ompi = format!("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 {pmi}");
        let plain = format!("RANK=0 WORLD_SIZE=4 {ompi}");
        assert_eq!(rank_variable(slurm), Some("SLURM_PROCID"));
        assert_eq!(rank_variable(&pmi), Some("PMI_RANK"));
        assert_eq!(rank_variable(&ompi), Some("OMPI_COMM_WORLD_RANK"));
        assert_eq!(rank_variable(&plain), Some("RANK"));
        let table = format!("RANK_TABLE_FILE=/t.json RANK_ID=0 {ompi}");
        assert_eq!(rank_variable(&table), Some("RANK_ID"));
        assert_eq!(rank_variable("RANK_ID=0"), None, "of some other program, without a table");
        assert_eq!(rank_variable("HOME=/root"), None);
    }

    #[test]
    fn what_a_batch_script_starts_itself_is_alone_and_told_so() {
        for step in ["", "SLURM_STEP_ID=4294967291"] {
            let config = read(&format!("SLURM_PROCID=0 SLURM_NTASKS=4 {step}"));
            assert!(config.launch.launcher().is_none());
            assert!(config.warnings[0].contains("start it with srun"), "{:?}", config.warnings);
        }
        assert!(read("SLURM_PROCID=0 SLURM_NTASKS=1").warnings.is_empty());
    }

    #[test]
    fn launchers_that_disagree_are_both_named() {
        let mpi = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2";
        let config = read(&format!("RANK=0 WORLD_SIZE=2 {mpi}"));
        assert_eq!(
            config.warnings,
            ["RANK=0 and OMPI_COMM_WORLD_RANK=1 disagree; RANK is used".to_string()]
        );
        let slurm = "SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_STEP_ID=0";
        assert_eq!(read(&format!("RANK=0 WORLD_SIZE=2 {slurm}")).warnings.len(), 2);
    }

    #[test]
    fn launchers_of_launchers_do_not_disagree() {
        let slurm = "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0";
        let mpi = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4";
        let torchrun = "RANK=7 WORLD_SIZE=8 TORCHELASTIC_RUN_ID=none";
        assert!(read(&format!("{mpi} {slurm}")).warnings.is_empty());
        assert!(read(&format!("{torchrun} {mpi} {slurm}")).warnings.is_empty());
    }

    #[test]
    fn slurm_tasks_are_the_ranks_only_where_both_numbers_agree() {
        let slurm = "SLURM_PROCID=1 SLURM_NTASKS=9 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0";
        let launch = read(slurm).launch;
        assert!(launch.ranks_are_slurm_tasks(1, 2));
        assert!(!launch.ranks_are_slurm_tasks(1, 9));
        assert!(!launch.ranks_are_slurm_tasks(0, 2));
    }
}
