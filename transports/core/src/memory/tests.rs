use super::*;

fn transports(n: usize) -> Vec<Box<dyn Transport>> {
    boxed(group_with_board(n, 16 << 10, 256))
}

fn boxed(group: Vec<Memory>) -> Vec<Box<dyn Transport>> {
    group.into_iter().map(|member| Box::new(member) as Box<dyn Transport>).collect()
}

crate::conformance_tests!(transports);
crate::board_tests!(transports);

#[test]
fn a_link_of_one_byte_passes_every_byte() {
    crate::conformance::all_pairs_exchange(&|n| boxed(group(n, 1)), 3, 500);
}

#[test]
fn a_link_of_seven_bytes_passes_every_byte() {
    crate::conformance::all_pairs_exchange(&|n| boxed(group(n, 7)), 3, 5000);
}

#[test]
fn what_a_member_sends_to_itself_arrives() {
    let mut alone = group(1, 8).remove(0);
    assert_eq!(alone.send(Peer(0), b"echo").unwrap(), 4);
    assert_eq!(alone.peek(Peer(0)).unwrap(), b"echo");
}

#[test]
#[should_panic(expected = "3 bytes consumed where 2 are shown")]
fn more_than_is_shown_cannot_be_consumed() {
    let mut group = group(2, 8);
    group[0].send(Peer(1), b"ab").unwrap();
    group[1].peek(Peer(0)).unwrap();
    group[1].consume(Peer(0), 3);
}
