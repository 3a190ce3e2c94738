//! Where the ranks of a launcher's job meet: at a host and one of a few ports that each rank can
//! tell from its own variables.

use std::ops::RangeInclusive;

use tutti_topo::Rank;

use super::nodes;
use super::rank_table::RankTable;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::host;
use crate::launch::{Launch, Launcher};

/// Which rank of how many, and who says so.
pub(super) struct Seat {
    pub(super) rank: Rank,
    pub(super) size: u32,
    pub(super) launcher: Launcher,
    pub(super) table: Option<RankTable>,
}

/// A host and the ports to try on it, in this order: the hub is at the first that was free.
#[derive(Debug, PartialEq)]
pub(super) struct Meeting {
    pub(super) host: String,
    pub(super) ports: Vec<u16>,
    /// What tells this job from others; no secret.
    pub(super) mark: String,
}

/// Ports of a meeting place that nobody names: below those that systems give out themselves.
const PORTS: RangeInclusive<u16> = 20_000..=31_999;

/// How many ports are tried before rank 0 gives up.
const TRIES: u16 = 16;

/// Where the ranks meet, by `MASTER_ADDR` and `MASTER_PORT` or by what the launcher tells.
///
/// # Errors
///
/// [`ErrorKind::Setting`] names the variable that is missing or makes no sense.
pub(super) fn place(config: &Config, seat: &Seat) -> Result<Meeting, Error> {
    let launch = &config.launch;
    let host = meeting_host(launch, seat)?;
    if let Some(run) = launch.get("TORCHELASTIC_RUN_ID") {
        let port = master_port(launch)?.ok_or_else(|| missing("MASTER_PORT"))?;
        return beside_torchrun(host, run, port);
    }
    if let Some(port) = master_port(launch)? {
        return Ok(Meeting { host, ports: vec![port], mark: format!("port {port}") });
    }
    let mark = job_mark(launch, seat).ok_or_else(|| missing("MASTER_PORT"))?;
    let ports: Vec<u16> = match &config.port_range {
        Some(range) => range.iter().collect(),
        None => PORTS.collect(),
    };
    Ok(Meeting { host, ports: in_a_row(&ports, &mark), mark })
}

/// torchrun's own store listens on `MASTER_PORT`.
fn beside_torchrun(host: String, run: &str, port: u16) -> Result<Meeting, Error> {
    let ports: Vec<u16> = (1..=TRIES).filter_map(|step| port.checked_add(step)).collect();
    if ports.is_empty() {
        let problem = "torchrun uses this port itself, and there is none above it for the ranks to \
                       meet at; choose a lower one";
        return Err(setting("MASTER_PORT", &port.to_string(), problem));
    }
    Ok(Meeting { host, ports, mark: format!("torchrun {run} port {port}") })
}

fn meeting_host(launch: &Launch, seat: &Seat) -> Result<String, Error> {
    if let Some(host) = launch.get("MASTER_ADDR") {
        return Ok(host.into());
    }
    if let Some(table) = &seat.table {
        return Ok(table.host.clone());
    }
    if is_on_one_host(launch, seat) {
        return Ok("127.0.0.1".into());
    }
    let step = launch.get("SLURM_STEP_NODELIST");
    let step = step.filter(|_| launch.ranks_are_slurm_tasks(seat.rank.0, seat.size));
    // Beneath mpirun the step holds the hosts of its daemons, perhaps without the first one.
    let named = step.map(|list| ("SLURM_STEP_NODELIST", list));
    let job = launch.get("SLURM_JOB_NODELIST").map(|list| ("SLURM_JOB_NODELIST", list));
    let (name, list) = named.or(job).ok_or_else(|| missing("MASTER_ADDR"))?;
    let first = nodes::first(list);
    let (host, only) =
        first.ok_or_else(|| setting(name, list, "a list of hosts as in node[1-4] is expected"))?;
    Ok(if only { "127.0.0.1".into() } else { host })
}

fn is_on_one_host(launch: &Launch, seat: &Seat) -> bool {
    let here = launch.get(seat.launcher.local_size).and_then(|text| text.parse().ok());
    here == Some(seat.size)
}

/// A text that all ranks of this job have in common, and no other job.
fn job_mark(launch: &Launch, seat: &Seat) -> Option<String> {
    let open_mpi = || {
        let name = launch.get("PMIX_NAMESPACE").or(launch.get("OMPI_MCA_ess_base_jobid"))?;
        Some(format!("Open MPI {name}"))
    };
    // Hydra tells its processes no name of the job: on one host, they share an ancestor.
    let hydra = || {
        let parent = host::ancestor_without("PMI_RANK")?;
        is_on_one_host(launch, seat).then(|| format!("Hydra {parent}"))
    };
    let slurm = || {
        let job = launch.get("SLURM_JOB_ID")?;
        let tasks = launch.ranks_are_slurm_tasks(seat.rank.0, seat.size);
        let step = launch.get("SLURM_STEP_ID").filter(|_| tasks).unwrap_or("none");
        Some(format!("Slurm {job} step {step}"))
    };
    if let Some(table) = &seat.table {
        return Some(table.mark.clone());
    }
    match seat.launcher.rank {
        "OMPI_COMM_WORLD_RANK" => open_mpi().or_else(slurm),
        "PMI_RANK" => hydra().or_else(slurm),
        _ => slurm(),
    }
}

/// As many of these ports as are tried, in a row that starts where the job's mark decides.
fn in_a_row(ports: &[u16], mark: &str) -> Vec<u16> {
    let start = fnv1a(mark) as usize % ports.len();
    let tries = ports.len().min(TRIES.into());
    ports.iter().cycle().skip(start).take(tries).copied().collect()
}

/// The hash of Fowler, Noll and Vo, which is the same in every build on every host.
fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn master_port(launch: &Launch) -> Result<Option<u16>, Error> {
    let Some(text) = launch.get("MASTER_PORT") else { return Ok(None) };
    let port = text.parse().ok().filter(|port| *port != 0);
    let wrong = || setting("MASTER_PORT", text, "a port from 1 to 65535 is expected");
    port.map(Some).ok_or_else(wrong)
}

/// The error for a variable that is needed and not there.
pub(super) fn missing(name: &str) -> Error {
    let problem = match name {
        "MASTER_ADDR" | "MASTER_PORT" => {
            "is not set, and the launcher does not tell where the ranks meet; set MASTER_ADDR to the \
             host of rank 0 and MASTER_PORT to a free port there"
        }
        _ => {
            "is not set; a launcher sets RANK, WORLD_SIZE and MASTER_ADDR, MASTER_PORT (or \
             TUTTI_ID), as do mpirun and srun in their own variables"
        }
    };
    setting(name, "", problem)
}

/// The error for a variable whose value makes no sense.
pub(super) fn setting(name: &str, value: &str, problem: impl Into<String>) -> Error {
    Error::new(
        None,
        ErrorKind::Setting { name: name.into(), value: value.into(), problem: problem.into() },
    )
}

#[cfg(test)]
mod tests {
    use super::super::env::seat;
    use super::*;

    fn meet(vars: &str) -> Result<Meeting, String> {
        let pair = |word: &str| word.split_once('=').map(|(n, v)| (n.to_string(), v.to_string()));
        let config = Config::from_vars(vars.split_whitespace().filter_map(pair)).unwrap();
        let seat = seat(&config.launch).unwrap().expect("there is a launcher");
        place(&config, &seat).map_err(|error| error.to_string())
    }

    fn ompi(rank: u32, local: u32, rest: &str) -> String {
        format!(
            "OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE={local} {rest}"
        )
    }

    #[test]
    fn ranks_of_an_open_mpi_job_meet_and_jobs_do_not() {
        let job = |rank, name: &str| meet(&ompi(rank, 4, &format!("PMIX_NAMESPACE={name}")));
        let one = job(0, "prterun-vm-25394@1").unwrap();
        assert_eq!(one, job(3, "prterun-vm-25394@1").unwrap());
        assert_eq!((one.host.as_str(), one.ports.len()), ("127.0.0.1", 16));
        let other = job(0, "prterun-vm-25395@1").unwrap();
        assert_ne!((one.ports, one.mark), (other.ports, other.mark));
    }

    #[test]
    fn open_mpi_over_hosts_needs_a_meeting_host() {
        let text = meet(&ompi(0, 2, "PMIX_NAMESPACE=x")).unwrap_err();
        assert!(text.contains("MASTER_ADDR") && text.contains("host of rank 0"), "{text}");
        let slurm = "PMIX_NAMESPACE=x SLURM_JOB_ID=7 SLURM_JOB_NODELIST=node[03-04]";
        assert_eq!(meet(&ompi(0, 2, slurm)).unwrap().host, "node03");
    }

    #[test]
    fn hydra_names_the_host_and_its_process_the_job() {
        let meeting = meet("PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=2").unwrap();
        assert_eq!(meeting.host, "127.0.0.1");
        assert!(meeting.mark.starts_with("Hydra "), "{}", meeting.mark);
        let text = meet("PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=1").unwrap_err();
        assert!(text.contains("MASTER_ADDR"), "{text}");
    }

    #[test]
    fn slurm_tasks_meet_on_the_first_host_of_their_step() {
        let step = |rank: u32, step: u32, rest: &str| {
            meet(&format!(
                "SLURM_PROCID={rank} SLURM_NTASKS=8 SLURM_JOB_ID=4711 SLURM_STEP_ID={step} \
                 SLURM_JOB_NODELIST=node[01-09] SLURM_STEP_NODELIST=node[03-05,9] {rest}"
            ))
            .unwrap()
        };
        let meeting = step(0, 2, "");
        assert_eq!(meeting.host, "node03");
        assert_eq!(meeting, step(7, 2, ""));
        assert_ne!(meeting.ports, step(0, 3, "").ports, "two steps of a job");
        assert_eq!(step(0, 2, "MASTER_PORT=29500").ports, [29500]);
        assert_eq!(step(0, 2, "MASTER_ADDR=login1").host, "login1");
    }

    #[test]
    fn beneath_torchrun_the_ports_above_its_own_are_tried() {
        let torchrun = |port: u16| {
            meet(&format!(
                "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT={port} TORCHELASTIC_RUN_ID=none"
            ))
        };
        assert_eq!(torchrun(29500).unwrap().ports, (29501..=29516).collect::<Vec<_>>());
        assert_eq!(torchrun(65534).unwrap().ports, [65535]);
        assert!(torchrun(65535).unwrap_err().contains("choose a lower one"));
        assert_ne!(torchrun(29500).unwrap().mark, torchrun(29501).unwrap().mark);
    }

    #[test]
    fn derived_ports_are_in_the_range() {
        let derived =
            |rest: &str| meet(&ompi(0, 4, &format!("PMIX_NAMESPACE=x {rest}"))).unwrap().ports;
        assert!(derived("").iter().all(|port| PORTS.contains(port)));
        let mut few = derived("TUTTI_PORT_RANGE=50000-50002,50100");
        few.sort();
        assert_eq!(few, [50000, 50001, 50002, 50100]);
        assert_eq!(derived("TUTTI_PORT_RANGE=50000-50002 MASTER_PORT=7"), [7]);
    }
}
