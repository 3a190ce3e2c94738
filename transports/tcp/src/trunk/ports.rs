//! The threads that use channels, and how they are woken.

use std::collections::HashMap;
use std::sync::{Arc, Condvar};

use super::bell::{Bell, Watch};

/// One per channel.
pub(super) struct Ports {
    by_channel: HashMap<u64, Port>,
    /// The channel whose thread sleeps in the kernel for all.
    leader: Option<u64>,
    kick: Arc<Bell>,
    kicked: bool,
}

/// What a channel's thread sleeps on.
#[derive(Default)]
struct Port {
    /// Something has happened that its thread has not been woken for.
    news: bool,
    sleeps: bool,
    condvar: Arc<Condvar>,
    watch: Option<Arc<Watch>>,
}

impl Ports {
    pub(super) fn new(kick: Arc<Bell>) -> Ports {
        Ports { by_channel: HashMap::new(), leader: None, kick, kicked: false }
    }

    pub(super) fn add(&mut self, channel: u64) {
        let before = self.by_channel.insert(channel, Port::default());
        assert!(before.is_none(), "channel {channel:x} exists");
    }

    pub(super) fn remove(&mut self, channel: u64) {
        self.by_channel.remove(&channel);
    }

    /// Lets a channel's thread know that it can do more, wherever it sleeps.
    pub(super) fn tell(&mut self, channel: u64) {
        let Some(port) = self.by_channel.get_mut(&channel) else { return };
        if std::mem::replace(&mut port.news, true) {
            return;
        }
        if let Some(watch) = &port.watch {
            watch.bell.ring();
        }
        if self.leader == Some(channel) {
            self.kick.ring();
            self.kicked = true;
        } else if port.sleeps {
            port.condvar.notify_one();
        }
    }

    /// Whether there was something to be told; now it has been.
    pub(super) fn take_news(&mut self, channel: u64) -> bool {
        let Some(port) = self.by_channel.get_mut(&channel) else { return false };
        let news = std::mem::take(&mut port.news);
        if news && let Some(watch) = &port.watch {
            watch.bell.silence();
        }
        news
    }

    /// Makes the channel's thread sleep in the kernel for all; false if another does.
    pub(super) fn lead(&mut self, channel: u64) -> bool {
        let leads = self.leader.is_none();
        if leads {
            self.leader = Some(channel);
        }
        leads
    }

    /// The leader is awake.
    pub(super) fn lead_no_more(&mut self) {
        self.leader = None;
        if std::mem::take(&mut self.kicked) {
            self.kick.silence();
        }
    }

    /// Wakes a sleeper to lead, if nobody does.
    pub(super) fn hand_over(&self) {
        if self.leader.is_none()
            && let Some(port) = self.by_channel.values().find(|port| port.sleeps)
        {
            port.condvar.notify_one();
        }
    }

    /// Notes whether a channel's thread sleeps on the condition variable, which is returned.
    pub(super) fn sleeps(&mut self, channel: u64, sleeps: bool) -> Arc<Condvar> {
        let port = self.by_channel.get_mut(&channel).expect("a channel's port lives as long");
        port.sleeps = sleeps;
        Arc::clone(&port.condvar)
    }

    /// Rings also for who watches this descriptor.
    pub(super) fn watch(&mut self, channel: u64, watch: Arc<Watch>) {
        let port = self.by_channel.get_mut(&channel).expect("a channel's port lives as long");
        if port.news {
            watch.bell.ring();
        }
        port.watch = Some(watch);
    }
}
