//! The peers, and how each is started.

use crate::case::Transport;

/// A library that is measured beside Tutti.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Its folder among the peers.
    pub(crate) folder: &'static str,
    pub(crate) kind: Kind,
    /// What every run takes.
    pub(crate) always: Setting,
    /// What it takes to send everything over a transport, or why that cannot be had.
    pub(crate) shm: Result<Setting, &'static str>,
    pub(crate) tcp: Result<Setting, &'static str>,
    /// What its documentation says for more ranks than cores. All are tried; the fastest counts.
    pub(crate) crowded: &'static [Setting],
    /// How the files in /dev/shm begin that it leaves behind when it is ended.
    pub(crate) leaves: Option<&'static str>,
}

pub(crate) enum Kind {
    /// Its launcher, in its folder, starts the program that was compiled from peer.c.
    Mpi { launcher: &'static str },
    /// Our own launcher starts benches/peers/gloo.py.
    Gloo,
}

/// Flags of the launcher and variables of the environment.
pub(crate) struct Setting {
    pub(crate) flags: &'static [&'static str],
    pub(crate) variables: &'static [(&'static str, &'static str)],
}

const DEFAULT: Setting = Setting { flags: &[], variables: &[] };

const fn flags(flags: &'static [&'static str]) -> Setting {
    Setting { flags, variables: &[] }
}

const fn variables(variables: &'static [(&'static str, &'static str)]) -> Setting {
    Setting { flags: &[], variables }
}

pub(crate) const PEERS: [Peer; 4] = [
    Peer {
        name: "Open MPI",
        folder: "openmpi",
        kind: Kind::Mpi { launcher: "bin/mpirun" },
        always: Setting {
            flags: &["--allow-run-as-root", "--bind-to", "none"],
            variables: &[("PRTE_MCA_prte_silence_shared_fs", "1")],
        },
        shm: Ok(DEFAULT),
        tcp: Ok(flags(&["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"])),
        // It does not start them without, and yields by itself then.
        crowded: &[
            flags(&["--map-by", ":OVERSUBSCRIBE"]),
            flags(&["--map-by", ":OVERSUBSCRIBE", "--mca", "mpi_yield_when_idle", "1"]),
        ],
        leaves: None,
    },
    Peer {
        name: "MPICH",
        folder: "mpich",
        kind: Kind::Mpi { launcher: "bin/mpiexec" },
        always: flags(&["-bind-to", "none"]),
        shm: Ok(DEFAULT),
        tcp: Ok(variables(&[("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "tcp,self")])),
        crowded: &[
            DEFAULT,
            variables(&[
                ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1"),
                ("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1"),
            ]),
        ],
        leaves: Some("mpich_shm_"),
    },
    Peer {
        name: "Intel MPI",
        folder: "impi",
        kind: Kind::Mpi { launcher: "bin/mpiexec" },
        always: variables(&[("I_MPI_PIN", "0")]),
        shm: Ok(DEFAULT),
        tcp: Ok(variables(&[
            ("I_MPI_FABRICS", "ofi"),
            ("FI_PROVIDER", "tcp"),
            // Its collectives use shared memory inside a host otherwise.
            ("I_MPI_COLL_INTRANODE", "pt2pt"),
        ])),
        crowded: &[
            DEFAULT,
            variables(&[("I_MPI_WAIT_MODE", "1")]),
            variables(&[("I_MPI_THREAD_YIELD", "2")]),
        ],
        leaves: None,
    },
    Peer {
        name: "Gloo",
        folder: "gloo",
        kind: Kind::Gloo,
        always: variables(&[("GLOO_SOCKET_IFNAME", "lo")]),
        shm: Err("it has no transport over shared memory"),
        tcp: Ok(DEFAULT),
        crowded: &[DEFAULT],
        leaves: None,
    },
];

impl Peer {
    pub(crate) fn over(&self, transport: Transport) -> Result<&Setting, &'static str> {
        match transport {
            Transport::Shm => self.shm.as_ref().map_err(|why| *why),
            Transport::Tcp => self.tcp.as_ref().map_err(|why| *why),
        }
    }

    /// The settings to try, each in a run of its own.
    pub(crate) fn settings(&self, crowded: bool) -> &'static [Setting] {
        if crowded { self.crowded } else { &[DEFAULT] }
    }
}
