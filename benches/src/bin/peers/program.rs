//! Starts the programs and reads what they print.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

use crate::args::Args;
use crate::case::{Band, Case};
use crate::machine::Machine;
use crate::outcome::{self, Outcome};
use crate::peers::{Kind, PEERS, Peer, Setting};
use crate::results::Library;

/// A program that takes longer for one band of sizes is ended; what it has printed counts,
/// and the next rounds go without it.
pub(crate) const PATIENCE_SECONDS: u32 = 60;

/// What is started in a round.
#[derive(Clone, Copy)]
pub(crate) enum Program {
    /// What the machine can do without any library.
    Raw,
    Tutti,
    Peer {
        peer: &'static Peer,
        setting: &'static Setting,
    },
}

/// Where the programs are, and the cores they run on.
pub(crate) struct Site {
    peers: PathBuf,
    sources: PathBuf,
    tutti: PathBuf,
    cores: Vec<u32>,
    installed: Vec<&'static Peer>,
    missing: Vec<String>,
}

impl Site {
    /// # Errors
    ///
    /// If we were not started by benches/peers/run.
    pub(crate) fn new(args: &Args, machine: &Machine) -> Result<Self> {
        // It has put everything into one folder: us, `tutti` beside us, and the peers.
        let release = std::env::current_exe()?;
        let tutti = release.with_file_name("tutti");
        let peers = release.ancestors().nth(2).unwrap_or(&release).join("peers");
        for path in [&tutti, &peers] {
            ensure!(path.exists(), "there is no {}; benches/peers/run makes it", path.display());
        }
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let (mut installed, mut missing) = (Vec::new(), Vec::new());
        for peer in &PEERS {
            let ready = peers.join(peer.folder).join("ready").exists();
            match (peer.over(args.transport), &peer.kind) {
                (Err(why), _) => missing.push(format!("{} is not measured: {why}", peer.name)),
                (_, Kind::Gloo) if !args.gloo => {
                    missing.push("Gloo is not measured without --gloo".into());
                }
                _ if ready => installed.push(peer),
                _ => missing.push(not_installed(&peers, peer)),
            }
        }
        Ok(Site { peers, sources, tutti, cores: machine.cores.clone(), installed, missing })
    }

    /// A sentence for each peer that cannot be measured.
    pub(crate) fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }

    pub(crate) fn cores(&self) -> &[u32] {
        &self.cores
    }

    /// What is to run for a case: each peer once for each of its settings.
    pub(crate) fn programs(&self, case: &Case) -> Vec<Program> {
        let crowded = case.is_crowded(self.cores.len());
        let able = self.installed.iter().filter(|peer| peer.over(case.transport).is_ok());
        let peers = able.flat_map(|peer| {
            let program = |setting| Program::Peer { peer, setting };
            peer.settings(crowded).iter().map(program)
        });
        [Program::Raw, Program::Tutti].into_iter().chain(peers).collect()
    }

    /// Runs a program over all sizes of a band. Blocks until it has ended.
    ///
    /// # Errors
    ///
    /// If it cannot be started. What goes wrong later is in the outcome.
    pub(crate) fn run(&self, program: &Program, case: &Case, band: &Band) -> Result<Outcome> {
        let mut command = Command::new("timeout");
        // In the foreground, so that whoever interrupts us interrupts it too.
        command.args(["--foreground", "--kill-after=5", &PATIENCE_SECONDS.to_string()]);
        match program {
            Program::Raw => self.raw(&mut command, case, band),
            Program::Tutti => self.tutti(&mut command, case, band),
            Program::Peer { peer, setting } => {
                self.peer(&mut command, peer, setting, case, band)?
            }
        }
        let start = SystemTime::now();
        let output = command.stdin(Stdio::null()).output();
        let output = output.context("cannot start timeout, of the coreutils")?;
        let mut outcome = match program {
            Program::Tutti => outcome::document(&output.stdout),
            _ => outcome::lines(&output.stdout),
        };
        if let Program::Raw = program {
            // It knows the bytes that it moves, not those of the case.
            let sizes = case.sizes(band);
            outcome.times.iter_mut().zip(sizes).for_each(|(time, bytes)| time.bytes = bytes);
        }
        outcome.too_slow = outcome::is_too_slow(&output);
        if let (Program::Peer { peer, .. }, true) = (program, outcome.too_slow) {
            peer.leaves.into_iter().for_each(|prefix| remove_since(start, prefix));
        }
        outcome.problem = outcome::problem(&output, outcome.times.len(), case.sizes(band).len());
        Ok(outcome)
    }

    fn raw(&self, command: &mut Command, case: &Case, band: &Band) {
        let processes = self.cores.len().min(case.ranks as usize);
        command.arg(self.peers.join("raw")).arg(case.transport.name());
        command.arg(list(&self.cores[..processes]));
        command.args([band.warm_up, band.iterations].map(|n| n.to_string()));
        let bytes = case.sizes(band).into_iter().map(|size| case.least_bytes(size, processes));
        command.args(bytes.map(|bytes| bytes.to_string()));
    }

    fn tutti(&self, command: &mut Command, case: &Case, band: &Band) {
        self.start_ranks(command, case);
        command.arg(&self.tutti).args(["bench", case.collective.name(), "--json", "-"]);
        command.args(["--transport", case.transport.name()]);
        for (flag, number) in [("-b", band.begin), ("-e", band.end), ("-f", band.factor)] {
            command.args([flag, &number.to_string()]);
        }
        command.args(["-w", &band.warm_up.to_string(), "-n", &band.iterations.to_string()]);
    }

    fn peer(
        &self,
        command: &mut Command,
        peer: &Peer,
        setting: &Setting,
        case: &Case,
        band: &Band,
    ) -> Result<()> {
        let home = self.peers.join(peer.folder);
        let over = peer.over(case.transport).into_iter();
        let settings: Vec<&Setting> =
            [&peer.always].into_iter().chain(over).chain([setting]).collect();
        for setting in &settings {
            command.envs(setting.variables.iter().copied());
        }
        match peer.kind {
            Kind::Mpi { launcher } => {
                command.env("I_MPI_ROOT", &home).env("OPAL_PREFIX", &home);
                let libraries = home.join("lib");
                command.env("LD_LIBRARY_PATH", &libraries).env("FI_PROVIDER_PATH", &libraries);
                command.arg(home.join(launcher)).args(["-n", &case.ranks.to_string()]);
                command.args(settings.iter().flat_map(|setting| setting.flags));
                command.args([self.sources.join("pin").into_os_string(), list(&self.cores).into()]);
                command.arg(home.join("peer"));
            }
            Kind::Gloo => {
                let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
                command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
                self.start_ranks(command, case);
                command.env("PYTHONPATH", home.join("packages"));
                command.arg(self.peers.join("venv/bin/python")).arg(self.sources.join("gloo.py"));
            }
        }
        command.arg(case.collective.name());
        command.args([band.warm_up, band.iterations].map(|n| n.to_string()));
        command.args(case.sizes(band).iter().map(u64::to_string));
        Ok(())
    }

    /// Starts what follows as every rank, on its core, by our own launcher.
    fn start_ranks(&self, command: &mut Command, case: &Case) {
        command.arg(&self.tutti).args(["run", "-p", &case.ranks.to_string(), "--"]);
        command.arg(self.sources.join("pin")).arg(list(&self.cores));
    }
}

impl Program {
    pub(crate) fn library(&self) -> Library {
        match self {
            Program::Raw => Library::Raw,
            Program::Tutti => Library::Tutti,
            Program::Peer { peer, .. } => Library::Peer(peer.name),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Program::Raw => f.write_str("raw limit"),
            Program::Tutti => f.write_str("Tutti"),
            Program::Peer { peer, setting } => {
                f.write_str(peer.name)?;
                setting.flags.iter().try_for_each(|flag| write!(f, " {flag}"))?;
                setting.variables.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
            }
        }
    }
}

/// Removes the files in /dev/shm that begin so and were made since then.
fn remove_since(start: SystemTime, prefix: &str) {
    for file in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let ours = file.file_name().to_string_lossy().starts_with(prefix);
        let made = file.metadata().and_then(|data| data.modified());
        if ours && made.is_ok_and(|made| made >= start) {
            // Whoever cannot remove it has not made it.
            let _ = fs::remove_file(file.path());
        }
    }
}

fn list(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<String>>().join(",")
}

/// With what benches/peers/run has written when it could not install the peer.
fn not_installed(peers: &Path, peer: &Peer) -> String {
    let log = fs::read_to_string(peers.join(format!("{}.log", peer.folder))).unwrap_or_default();
    let mut errors = log.lines().filter(|line| line.to_lowercase().contains("error"));
    let last = errors.next_back().or(log.lines().next_back()).unwrap_or("it was not tried");
    format!("{} is not installed: {}", peer.name, last.trim())
}
