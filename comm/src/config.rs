//! The settings of a communicator: one struct, and one function that reads the environment.

use std::time::Duration;

use tutti_topo::plan::Overrides;
use tutti_transport::handshake::Secret;

use crate::error::{Error, ErrorKind};
use crate::fold::Level;
use crate::interfaces::InterfaceFilter;
use crate::launch::Launch;
use crate::ports::PortRange;

/// The settings of a communicator.
#[derive(Clone, Debug)]
pub struct Config {
    /// Algorithms forced per collective (`TUTTI_ALGO`, as in `all_reduce:ring,broadcast:chain`).
    pub algo: Overrides,
    /// What carries the bytes (`TUTTI_TRANSPORT`: `auto`, `shm`, `tcp`).
    pub transport: TransportChoice,
    /// How long an operation may stand still before it fails (`TUTTI_DEADLINE`, in seconds).
    pub deadline: Duration,
    /// How long to wait at start for ranks that are late (`TUTTI_START_DEADLINE`, in seconds).
    pub start_deadline: Duration,
    /// How long a wait polls without giving up its core, where cores suffice
    /// (`TUTTI_SPIN_US`, in microseconds). 0 yields at once.
    pub spin: Duration,
    /// Bytes per ring between two ranks of a host (`TUTTI_SHM_RING`, a power of two from 4096).
    pub shm_ring_bytes: usize,
    /// What a rank has in shared memory for its part of what all ranks of a host exchange at the same
    /// time (`TUTTI_SHM_BOARD`, bytes, a multiple of 4096). More than its core's second-level
    /// cache holds is best.
    pub shm_board_bytes: usize,
    /// The vector instructions used for folding (`TUTTI_SIMD`: `baseline`, `avx2`, `avx512`).
    pub simd: Level,
    /// What proves that a process belongs to the job, where no unique id carries it
    /// (`TUTTI_JOB_SECRET`, any text).
    pub job_secret: Option<Secret>,
    /// What tells this host from others, where the system's own marks do not fit: ranks with equal
    /// ids try to share memory (`TUTTI_HOST_ID`, any text).
    pub host_id: Option<String>,
    /// The interfaces of which one address is told to the other ranks, for TCP
    /// (`TUTTI_SOCKET_IFNAME`, as in `eth,ib`). Without it, the one that leads to the rendezvous.
    pub socket_ifname: Option<InterfaceFilter>,
    /// The ports to listen on, for TCP and for a rendezvous that has no `MASTER_PORT`
    /// (`TUTTI_PORT_RANGE`, as in `50000-50015,50100`).
    pub port_range: Option<PortRange>,
    /// Where the job is started from; see [`Launch`].
    pub launch: Launch,
    /// Complaints about the environment that are no errors, such as an unknown `TUTTI_*` name, or
    /// two launchers that tell different ranks.
    pub warnings: Vec<String>,
}

/// What carries the bytes between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportChoice {
    /// Shared memory inside a host, TCP across.
    Auto,
    /// Shared memory only; ranks on several hosts are refused.
    Shm,
    /// TCP only, also inside a host.
    Tcp,
}

impl TransportChoice {
    /// `auto`, `shm` or `tcp`.
    pub fn name(self) -> &'static str {
        match self {
            TransportChoice::Auto => "auto",
            TransportChoice::Shm => "shm",
            TransportChoice::Tcp => "tcp",
        }
    }

    /// The choice of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Auto, Self::Shm, Self::Tcp].into_iter().find(|choice| choice.name() == name)
    }
}

impl Default for Config {
    /// The defaults; nothing is read from the environment.
    fn default() -> Self {
        Config {
            algo: Overrides::default(),
            transport: TransportChoice::Auto,
            deadline: Duration::from_secs(300),
            start_deadline: Duration::from_secs(120),
            spin: Duration::from_micros(50),
            shm_ring_bytes: tutti_shm::Options::default().ring_bytes,
            shm_board_bytes: tutti_shm::Options::default().board_bytes,
            simd: Level::detect(),
            job_secret: None,
            host_id: None,
            socket_ifname: None,
            port_range: None,
            launch: Launch::default(),
            warnings: Vec::new(),
        }
    }
}

/// Every variable that starts with `TUTTI_` and means something.
const KNOWN: [&str; 14] = [
    "TUTTI_ALGO",
    "TUTTI_DEADLINE",
    "TUTTI_HOST_ID",
    "TUTTI_ID",
    "TUTTI_JOB_SECRET",
    "TUTTI_LOG",
    "TUTTI_PORT_RANGE",
    "TUTTI_SHM_BOARD",
    "TUTTI_SHM_RING",
    "TUTTI_SIMD",
    "TUTTI_SOCKET_IFNAME",
    "TUTTI_SPIN_US",
    "TUTTI_START_DEADLINE",
    "TUTTI_TRANSPORT",
];

impl Config {
    /// The longest message that ranks of a host exchange at the same time, in bytes.
    pub fn shm_message_bytes(&self) -> usize {
        tutti_shm::Options { ring_bytes: self.shm_ring_bytes, board_bytes: self.shm_board_bytes }
            .longest_message()
    }

    /// The defaults, changed by the `TUTTI_*` variables; the launcher's variables in
    /// [`Config::launch`]. An unknown `TUTTI_*` variable becomes a warning that names the nearest
    /// known one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Setting`] names the variable, its value and what is possible.
    pub fn from_env() -> Result<Config, Error> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        };
        Config::from_vars(std::env::vars_os().map(text))
    }

    /// As [`Config::from_env`], from a list of variables.
    ///
    /// # Errors
    ///
    /// As [`Config::from_env`].
    pub fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Result<Config, Error> {
        let mut config = Config::default();
        let mut vars: Vec<_> = vars.into_iter().collect();
        vars.sort();
        for (name, value) in vars {
            if !config.launch.set(&name, &value) && name.starts_with("TUTTI_") {
                config.set(&name, value)?;
            }
        }
        config.warnings.extend(config.launch.warnings());
        Ok(config)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), Error> {
        let refuse = |problem: String| {
            let (name, value) = (name.into(), value.clone());
            Error::new(None, ErrorKind::Setting { name, value, problem })
        };
        match name {
            "TUTTI_ALGO" => {
                self.algo =
                    Overrides::parse(&value).map_err(|problem| refuse(problem.to_string()))?;
            }
            "TUTTI_TRANSPORT" => {
                self.transport = TransportChoice::from_name(&value)
                    .ok_or_else(|| refuse("possible are auto, shm, tcp".into()))?;
            }
            "TUTTI_DEADLINE" => self.deadline = seconds(&value).map_err(refuse)?,
            "TUTTI_START_DEADLINE" => self.start_deadline = seconds(&value).map_err(refuse)?,
            "TUTTI_SPIN_US" => {
                let micros =
                    value.parse().map_err(|_| refuse("whole microseconds are expected".into()))?;
                self.spin = Duration::from_micros(micros);
            }
            "TUTTI_SHM_RING" => self.shm_ring_bytes = ring_bytes(&value).map_err(refuse)?,
            "TUTTI_SHM_BOARD" => self.shm_board_bytes = board_bytes(&value).map_err(refuse)?,
            "TUTTI_SIMD" => {
                self.simd =
                    Level::from_name(&value).map_err(|problem| refuse(problem.to_string()))?;
            }
            "TUTTI_JOB_SECRET" => self.job_secret = Some(Secret::from_text(&value)),
            "TUTTI_HOST_ID" => self.host_id = Some(value),
            "TUTTI_SOCKET_IFNAME" => {
                self.socket_ifname = Some(InterfaceFilter::parse(&value).map_err(refuse)?);
            }
            "TUTTI_PORT_RANGE" => self.port_range = Some(PortRange::parse(&value).map_err(refuse)?),
            // Read by the programs that write the log.
            "TUTTI_LOG" => {}
            unknown => self.warnings.push(unknown_variable(unknown)),
        }
        Ok(())
    }
}

fn seconds(value: &str) -> Result<Duration, String> {
    let seconds = value.parse::<f64>().ok().filter(|s| *s > 0.0);
    let duration = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    duration.ok_or_else(|| "a number of seconds above 0 is expected".into())
}

fn ring_bytes(value: &str) -> Result<usize, String> {
    let bytes =
        value.parse::<usize>().ok().filter(|n| n.is_power_of_two() && (4096..=1 << 30).contains(n));
    bytes.ok_or_else(|| "a power of two from 4096 to 1073741824 is expected".into())
}

fn board_bytes(value: &str) -> Result<usize, String> {
    let fits = |n: &usize| *n <= 1 << 30 && n.is_multiple_of(4096);
    let bytes = value.parse::<usize>().ok().filter(fits);
    bytes.ok_or_else(|| "a multiple of 4096 up to 1073741824 is expected".into())
}

fn unknown_variable(name: &str) -> String {
    let nearest = KNOWN.iter().min_by_key(|known| strsim::damerau_levenshtein(known, name));
    let nearest = nearest.expect("the list is not empty");
    format!("{name} is not a setting of Tutti and has no effect; did you mean {nearest}?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<Config, Error> {
        Config::from_vars(vars.iter().map(|(name, value)| (name.to_string(), value.to_string())))
    }

    #[test]
    fn unknown_variable_is_a_warning_with_the_nearest_name() {
        let config = read(&[("TUTTI_DEADLIN", "3"), ("HOME", "/root")]).unwrap();
        assert_eq!(config.warnings.len(), 1);
        assert!(
            config.warnings[0].contains("did you mean TUTTI_DEADLINE?"),
            "{:?}",
            config.warnings
        );
        assert_eq!(config.deadline, Config::default().deadline);
    }

    #[test]
    fn every_known_variable_is_read() {
        for name in KNOWN {
            let value = match name {
                "TUTTI_ALGO" => "all_reduce:ring",
                "TUTTI_TRANSPORT" => "tcp",
                "TUTTI_SIMD" => "baseline",
                "TUTTI_SHM_RING" | "TUTTI_SHM_BOARD" => "65536",
                _ => "5",
            };
            let config = read(&[(name, value)]).unwrap();
            assert_eq!(config.warnings, Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn bad_value_names_variable_value_and_remedy() {
        for (name, value, remedy) in [
            ("TUTTI_TRANSPORT", "infiniband", "auto, shm, tcp"),
            ("TUTTI_DEADLINE", "-1", "above 0"),
            ("TUTTI_DEADLINE", "0", "above 0"),
            ("TUTTI_DEADLINE", "NaN", "above 0"),
            ("TUTTI_DEADLINE", "1e300", "above 0"),
            ("TUTTI_SHM_RING", "5000", "power of two"),
            ("TUTTI_SHM_BOARD", "5000", "multiple of 4096"),
            ("TUTTI_SPIN_US", "1.5", "whole microseconds"),
            ("TUTTI_ALGO", "all_reduce:rung", "ring"),
            ("TUTTI_SOCKET_IFNAME", "eth,,ib", "=eth0,eth1"),
            ("TUTTI_PORT_RANGE", "9-7", "50000-50015,50100"),
        ] {
            let text = read(&[(name, value)]).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(value) && text.contains(remedy), "{text}");
        }
    }

    #[test]
    fn launcher_variables_are_kept_as_they_are() {
        let config = read(&[("RANK", "3"), ("WORLD_SIZE", "x"), ("MASTER_PORT", "29500")]).unwrap();
        assert_eq!(config.launch.get("RANK"), Some("3"));
        assert_eq!(config.launch.get("WORLD_SIZE"), Some("x"));
        assert_eq!(config.launch.get("MASTER_PORT"), Some("29500"));
    }
}
