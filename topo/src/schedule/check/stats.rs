use crate::schedule::{Schedule, Step};

/// What a correct set of schedules costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Into how many chunks the data is cut; `moves / chunks` is in units of the data.
    pub chunks: u32,
    /// Messages of all ranks together.
    pub messages: u64,
    /// Chunks sent, all ranks together.
    pub moves: u64,
    /// The most chunks any one rank sends or any one rank receives.
    pub moves_per_rank: u64,
    /// The latency in messages: the longest row of messages that had to wait each for what the one
    /// before it brought. That a rank sends one message after the other does not count.
    pub rounds: u32,
}

impl Stats {
    /// Counts the moves of schedules that took so many rounds.
    pub(super) fn of(schedules: &[Schedule], rounds: u32) -> Stats {
        let chunks = schedules[0].chunks;
        let mut stats = Stats { chunks, messages: 0, moves: 0, moves_per_rank: 0, rounds };
        for schedule in schedules {
            let (mut sent, mut received) = (0, 0);
            for step in &schedule.steps {
                match step {
                    Step::Send { part, .. } => {
                        stats.messages += 1;
                        sent += u64::from(part.len);
                    }
                    Step::Recv { part, .. } | Step::RecvReduce { part, .. } => {
                        received += u64::from(part.len);
                    }
                    Step::Reduce { .. } | Step::Copy { .. } => {}
                }
            }
            stats.moves += sent;
            stats.moves_per_rank = stats.moves_per_rank.max(sent).max(received);
        }
        stats
    }
}
