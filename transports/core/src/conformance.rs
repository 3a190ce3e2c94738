//! What every transport must do, as functions that panic where one does not.
//!
//! `make(n)` makes the `n` members of one group, peers 0 to `n - 1` of each other. A crate writes
//! [`conformance_tests!(make);`](crate::conformance_tests) among its tests: one `#[test]` per
//! claim. Where all peers share a board, [`board_tests!(make);`](crate::board_tests) adds the
//! claims on it.
//!
//! Most claims drive all members from one thread: a round polls each, and after a round that
//! moved nothing each member parks for a moment. How many such rounds may follow each other is
//! bounded. Those on missed wakes give every member a thread.

mod board;
mod close;
mod drive;
mod park;
mod stream;

use crate::Transport;

pub use board::{
    board_finds_a_tag_that_differs_without_a_read, board_holds_a_post_back_until_its_slot_is_free,
    board_joins_the_parts_of_a_message, board_shows_every_message_of_the_round,
    board_takes_messages_of_any_length,
};
pub use close::{
    close_ends_a_peek, close_ends_a_send, close_keeps_what_was_taken,
    close_leaves_the_others_alone, close_with_unread_bytes_keeps_what_was_taken,
};
pub use park::{
    news_comes_with_an_arrival, park_ends_at_its_limit, park_ends_when_a_descriptor_is_readable,
    park_misses_no_arrival, park_misses_no_room, park_sleeps_beside_a_full_buffer,
    park_sleeps_when_nothing_comes,
};
pub use stream::{
    a_head_arrives_before_what_is_behind_it, all_pairs_exchange, all_pairs_of_five_exchange,
    all_pairs_of_three_exchange, bytes_arrive_whole_and_in_order, consume_drops_a_part,
    exchange_of_large_messages_goes_through, kind_is_named, peek_grows_to_four_kibibytes,
    recv_mixes_with_peek, send_takes_nothing_when_full_and_goes_on,
};

/// What makes a group of so many members, in the order of their peer numbers.
pub type Make<'a> = &'a dyn Fn(usize) -> Vec<Box<dyn Transport>>;

/// One `#[test]` per claim on a transport, over `$make(n)`; see [`conformance`](mod@crate::conformance).
#[macro_export]
macro_rules! conformance_tests {
    ($make:path) => {
        $crate::conformance_tests! { $make =>
            bytes_arrive_whole_and_in_order
            a_head_arrives_before_what_is_behind_it
            peek_grows_to_four_kibibytes
            consume_drops_a_part
            recv_mixes_with_peek
            all_pairs_of_three_exchange
            all_pairs_of_five_exchange
            exchange_of_large_messages_goes_through
            send_takes_nothing_when_full_and_goes_on
            kind_is_named
            close_keeps_what_was_taken
            close_with_unread_bytes_keeps_what_was_taken
            close_ends_a_peek
            close_ends_a_send
            close_leaves_the_others_alone
            park_ends_at_its_limit
            park_sleeps_when_nothing_comes
            park_sleeps_beside_a_full_buffer
            park_ends_when_a_descriptor_is_readable
            park_misses_no_arrival
            park_misses_no_room
            news_comes_with_an_arrival
        }
    };
    ($make:path => $($claim:ident)*) => { $(
        #[test]
        fn $claim() {
            $crate::conformance::$claim(&$make);
        }
    )* };
}

/// One `#[test]` per claim on a board, over `$make(n)`; see [`conformance`](mod@crate::conformance).
#[macro_export]
macro_rules! board_tests {
    ($make:path) => {
        $crate::conformance_tests! { $make =>
            board_shows_every_message_of_the_round
            board_takes_messages_of_any_length
            board_joins_the_parts_of_a_message
            board_finds_a_tag_that_differs_without_a_read
            board_holds_a_post_back_until_its_slot_is_free
        }
    };
}
