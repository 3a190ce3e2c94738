//! The same program prints the same, whoever starts it. `.ci/run launchers` installs what this needs:
//! `cargo build -p tutti-cli && tests/launchers/install target/launchers`, then
//! `cargo test -p tutti-tests --test launchers -- --ignored`.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program whose processes are ranks.
const RANK: &str = env!("CARGO_BIN_EXE_rank");

const RANKS: u32 = 4;

/// What the ranks print, sorted.
fn expected() -> Vec<String> {
    let line = |rank: u32| {
        format!("rank {rank} of 4: the ranks are [0, 1, 2, 3], the sum of their squares is 14")
    };
    (0..RANKS).map(line).collect()
}

/// A file in the folder of the build.
fn built(file: &str) -> PathBuf {
    let target = Path::new(RANK).ancestors().nth(2).expect("the program is in target/PROFILE");
    let path = target.join(file);
    assert!(path.exists(), "{} is missing; `.ci/run launchers` installs it", path.display());
    path
}

/// A command that starts the program, without any variable of a launcher that may have started this test.
fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    let kept = ["HOME", "PATH", "TMPDIR"];
    command.env_clear().envs(kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}

/// What the lines of the ranks say, sorted. All must have ended well.
fn said(commands: Vec<Command>) -> Vec<String> {
    let start = |mut command: Command| {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let children: Vec<_> = commands.into_iter().map(start).collect();
    let mut lines = Vec::new();
    for child in children {
        let output = child.wait_with_output().expect("an own child");
        let [out, complaints] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{}: {out}{complaints}", output.status);
        // Some launchers put a mark before each line.
        let of_rank = |line: &str| line.find("rank ").map(|at| line[at..].to_string());
        lines.extend(out.lines().filter_map(of_rank));
    }
    lines.sort();
    lines
}

/// What a launcher's ranks say that takes the program as its last arguments.
fn launched(launcher: &str, args: &[&str]) -> Vec<String> {
    let mut command = clean(&built(launcher));
    command.args(args).args([RANK, "tell"]);
    said(vec![command])
}

/// What ranks say that were started one by one with such variables.
fn by_variables(of: impl Fn(u32) -> Vec<(&'static str, String)>) -> Vec<String> {
    let rank = |rank| {
        let mut command = clean(Path::new(RANK));
        command.arg("tell").envs(of(rank));
        command
    };
    said((0..RANKS).map(rank).collect())
}

#[test]
#[ignore = "needs what .ci/run launchers installs"]
fn tutti_run_starts_the_program() {
    let profile = Path::new(RANK).parent().and_then(Path::file_name).expect("a profile");
    let tutti = Path::new(profile).join("tutti");
    assert_eq!(launched(tutti.to_str().expect("text"), &["run", "-p", "4", "--"]), expected());
}

#[test]
#[ignore = "needs what .ci/run launchers installs"]
fn open_mpi_starts_the_program() {
    let args = ["--allow-run-as-root", "--oversubscribe", "-n", "4"];
    assert_eq!(launched("launchers/openmpi/bin/mpirun", &args), expected());
}

#[test]
#[ignore = "needs what .ci/run launchers installs"]
fn mpich_starts_the_program() {
    assert_eq!(launched("launchers/mpich/bin/mpiexec", &["-n", "4"]), expected());
}

#[test]
#[ignore = "belongs to .ci/run launchers"]
fn the_program_starts_with_the_variables_of_torchrun() {
    // torchrun's own store has the port.
    let store = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = store.local_addr().unwrap().port();
    let said = by_variables(|rank| {
        let (rank, size) = (rank.to_string(), RANKS.to_string());
        let zero = || "0".to_string();
        vec![
            ("RANK", rank.clone()),
            ("LOCAL_RANK", rank.clone()),
            ("ROLE_RANK", rank),
            ("ROLE_NAME", "default".into()),
            ("GROUP_RANK", zero()),
            ("WORLD_SIZE", size.clone()),
            ("LOCAL_WORLD_SIZE", size.clone()),
            ("ROLE_WORLD_SIZE", size),
            ("GROUP_WORLD_SIZE", "1".into()),
            ("MASTER_ADDR", "127.0.0.1".into()),
            ("MASTER_PORT", port.to_string()),
            ("TORCHELASTIC_RESTART_COUNT", zero()),
            ("TORCHELASTIC_MAX_RESTARTS", zero()),
            ("TORCHELASTIC_RUN_ID", "none".into()),
            ("TORCHELASTIC_USE_AGENT_STORE", "True".into()),
            ("OMP_NUM_THREADS", "1".into()),
        ]
    });
    assert_eq!(said, expected());
}

#[test]
#[ignore = "belongs to .ci/run launchers"]
fn the_program_starts_with_the_variables_of_srun() {
    let job = std::process::id().to_string();
    let said = by_variables(|rank| {
        let (rank, size) = (rank.to_string(), RANKS.to_string());
        let node = || "node17".to_string();
        vec![
            ("SLURM_JOB_ID", job.clone()),
            ("SLURM_JOBID", job.clone()),
            ("SLURM_STEP_ID", "0".into()),
            ("SLURM_STEPID", "0".into()),
            ("SLURM_PROCID", rank.clone()),
            ("SLURM_LOCALID", rank),
            ("SLURM_NODEID", "0".into()),
            ("SLURM_NTASKS", size.clone()),
            ("SLURM_NPROCS", size.clone()),
            ("SLURM_STEP_NUM_TASKS", size.clone()),
            ("SLURM_STEP_TASKS_PER_NODE", size.clone()),
            ("SLURM_TASKS_PER_NODE", size),
            ("SLURM_NNODES", "1".into()),
            ("SLURM_STEP_NUM_NODES", "1".into()),
            ("SLURM_STEP_NODELIST", node()),
            ("SLURM_JOB_NODELIST", node()),
            ("SLURM_NODELIST", node()),
            ("SLURMD_NODENAME", node()),
        ]
    });
    assert_eq!(said, expected());
}
