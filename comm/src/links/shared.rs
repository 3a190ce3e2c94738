use std::net::SocketAddr;
use std::sync::Mutex;

use tutti_tcp::{Channel, Trunk};
use tutti_topo::Rank;
use tutti_transport::Peer;
use tutti_transport::handshake::Secret;

use super::{exchange, listen, refused};
use crate::bootstrap::Joined;
use crate::config::Config;
use crate::error::Error;
use crate::interfaces::seen_from_here;

/// The TCP connections that all groups of a process share, made when the first group needs them.
pub(crate) struct SharedTcp {
    world_rank: u32,
    world_size: usize,
    secret: Secret,
    session: u64,
    own: SocketAddr,
    trunk: Mutex<Option<Trunk>>,
}

impl SharedTcp {
    /// Between the ranks of `world`; this one will listen where it listens already, at another port.
    pub(crate) fn new(rank: Rank, world: &Joined, secret: Secret) -> SharedTcp {
        SharedTcp {
            world_rank: rank.0,
            world_size: world.reports.len(),
            secret,
            session: world.session,
            own: world.reports[rank.index()].address,
            trunk: Mutex::new(None),
        }
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// A channel between the members of a group. They tell each other where they listen.
    pub(super) fn channel(
        &self,
        rank: Rank,
        world_ranks: &[u32],
        joined: &mut Joined,
        config: &Config,
    ) -> Result<Channel, Error> {
        let trunk = self.trunk(config)?;
        let members: Vec<Peer> = world_ranks.iter().copied().map(Peer).collect();
        // Before the exchange: who has finished that may send.
        let channel = trunk.channel(joined.session, members.clone());
        let own = trunk.local_addr().to_string();
        let told = exchange(rank, &mut joined.monitor, own.as_bytes(), config.start_deadline)?;
        for (peer, address) in members.into_iter().zip(told) {
            trunk.know(peer, seen_from_here(parse(rank, &address)?, self.own));
        }
        Ok(channel)
    }

    fn trunk(&self, config: &Config) -> Result<Trunk, Error> {
        let mut trunk = self.trunk.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(trunk) = &*trunk {
            return Ok(trunk.clone());
        }
        let listener = listen(self.own, config)?;
        let options =
            tutti_tcp::Options { connect_timeout: config.start_deadline, ..Default::default() };
        let (me, secret) = (Peer(self.world_rank), self.secret.clone());
        let made = Trunk::new(listener, me, self.world_size, secret, self.session, options)
            .map_err(|error| refused("cannot make connections for groups", error))?;
        Ok(trunk.insert(made).clone())
    }
}

fn parse(rank: Rank, told: &[u8]) -> Result<SocketAddr, Error> {
    let text = String::from_utf8_lossy(told);
    text.parse().map_err(|_| {
        let what = format!("a rank says that it listens at {text:?}, which is no address");
        Error::start(Some(rank), what)
    })
}
