//! What every transport must do, on links without latency or limit: there the clock need not
//! advance. The claims on sleeping are left out, for this transport never sleeps.

use tutti_sim::{Options, Route, world};
use tutti_transport::{Transport, conformance_tests};

conformance_tests! { group =>
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
}

fn group(n: usize) -> Vec<Box<dyn Transport>> {
    let free = |_, _| Route { resources: Vec::new(), latency_ns: 0 };
    let (_, ends) = world(n as u32, Options::new(Vec::new()), free);
    ends.into_iter().map(|end| Box::new(end) as _).collect()
}
