//! What the format takes and what it refuses, complaint by complaint.

use super::FabricErrorKind;
use crate::Rank;
use crate::fabric::{Fabric, Place, Provenance};

const HEAD: &str = "schema = \"fabric/1\"\nunits = { bandwidth = \"GB/s\", latency = \"ns\" }\n";

/// A file of that body after a head of two lines.
fn read(body: &str) -> Result<Fabric, super::FabricError> {
    Fabric::from_toml(&format!("{HEAD}{body}"))
}

/// The complaint about such a file, with line and column.
fn complaint(body: &str) -> String {
    read(body).expect_err("the file is wrong").to_string()
}

const TWO_HOSTS: &str = "
[[host]]
name = \"a\"
cores = 8
[[host]]
name = \"b\"
cores = 8
";

#[test]
fn a_full_file_is_read_to_the_last_figure() {
    let fabric = read(
        r#"
        [[supernode]]
        name = "left"
        [[supernode]]
        name = "right"
        [[host]]
        name = "a"
        supernode = "right"
        numa = 2
        cores = 6.5
        ranks = 4
        fold = 12
        provenance = "measured"
        [[host]]
        name = "b"
        supernode = "left"
        cores = 8
        [[link]]
        between = "hosts"
        of = "b"
        bw = 6
        lat = 9_000
        [[link]]
        between = "hosts"
        bw = 12.5
        lat = 3000
        rails = 2
        provenance = "spec"
        [[link]]
        from = "b"
        to = "a"
        bw = 50
        lat = 0x10
        provenance = "measured"
        "#,
    )
    .unwrap();
    assert_eq!(fabric.ranks(), 5);
    let numa_nodes: Vec<u32> = (0..4).map(|rank| fabric.place(Rank(rank)).numa_node).collect();
    assert_eq!(numa_nodes, [0, 0, 1, 1]);
    assert_eq!(fabric.place(Rank(4)), Place { host: 1, numa_node: 0 });
    let [a, b] = fabric.hosts() else { panic!("two hosts") };
    assert_eq!((a.supernode, a.cores, b.supernode), (1, 6.5, 0));
    assert_eq!((a.fold_gb_per_s.value, a.fold_gb_per_s.provenance), (12.0, Provenance::Measured));
    assert_eq!((a.port.gb_per_s.value, a.port.rails), (12.5, 2));
    assert_eq!(a.port.provenance(), Provenance::Spec);
    assert_eq!((b.port.gb_per_s.value, b.port.latency_ns.value), (6.0, 9000.0));
    assert_eq!(b.port.provenance(), Provenance::Assumed);
    let pair = fabric.pair(1, 0).expect("a link of a and b");
    assert_eq!((pair.gb_per_s.value, pair.latency_ns.value, pair.rails), (50.0, 16.0, 1));
}

#[test]
fn the_samples_are_read() {
    for sample in [
        include_str!("../../../../examples/fabrics/one-host.toml"),
        include_str!("../../../../examples/fabrics/four-hosts.toml"),
        include_str!("../../../../examples/fabrics/two-supernodes.toml"),
    ] {
        let fabric = Fabric::from_toml(sample).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Fabric::from_toml(&fabric.to_toml()).as_ref(), Ok(&fabric));
    }
}

#[test]
fn an_unknown_key_is_named_with_line_and_column_and_the_nearest_known_one() {
    assert_eq!(
        complaint("[[host]]\nname = \"a\"\n  core = 3"),
        "line 5, column 3: [[host]] has no key `core`; did you mean `cores`?",
    );
    assert_eq!(
        complaint("[[supernode]]\ncolour = 3"),
        "line 4, column 1: [[supernode]] has no key `colour`; expected one of: name",
    );
    assert_eq!(
        complaint("[[hosts]]\nname = \"a\""),
        "line 3, column 3: the file has no key `hosts`; did you mean `host`?",
    );
}

#[test]
fn a_value_of_a_wrong_type_is_named_with_both_types() {
    assert_eq!(
        complaint("[[host]]\nname = \"a\"\ncores = \"8\""),
        "line 5, column 9: `cores` is a number, not of type string",
    );
    assert_eq!(
        complaint("[[host]]\nname = \"a\"\ncores = 8\nranks = 1.5"),
        "line 6, column 9: `ranks` is a whole number, not of type float",
    );
    assert_eq!(
        complaint("host = 3"),
        "line 3, column 8: `host` is a list of tables, not of type integer"
    );
}

#[test]
fn numbers_without_meaning_are_refused() {
    let cores = |cores: &str| complaint(&format!("[[host]]\nname = \"a\"\ncores = {cores}"));
    for wrong in ["0", "-1", "nan", "inf", "-0.5"] {
        let expected = format!("line 5, column 9: `cores` is a number above 0, not {wrong}");
        assert_eq!(cores(wrong), expected);
    }
    for wrong in ["0", "-1", "4294967296"] {
        let ranks = complaint(&format!("[[host]]\nname = \"a\"\ncores = 1\nranks = {wrong}"));
        assert!(ranks.contains(&format!("from 1 to 4294967295, not {wrong}")), "{ranks}");
    }
    let ranks = complaint("[[host]]\nname = \"a\"\ncores = 1\nranks = 4294967295");
    assert_eq!(ranks, "line 6, column 9: more than 1048576 ranks in all");
}

#[test]
fn a_file_without_schema_or_units_is_refused() {
    let complaint = |text| Fabric::from_toml(text).unwrap_err().to_string();
    assert_eq!(complaint(""), "line 1, column 1: the file needs `schema`, the string \"fabric/1\"");
    assert_eq!(
        complaint("schema = \"fabric/2\""),
        "line 1, column 10: `schema` cannot be \"fabric/2\"; did you mean `fabric/1`?",
    );
    assert_eq!(
        complaint("schema = \"fabric/1\"\n"),
        "line 1, column 1: the file needs `units`, \
         with bandwidth = \"GB/s\" and latency = \"ns\"",
    );
    assert_eq!(
        complaint("schema = \"fabric/1\"\n[units]\nbandwidth = \"GB/s\"\n"),
        "line 2, column 1: [units] needs `latency`, the string \"ns\"",
    );
    assert_eq!(
        complaint("schema = \"fabric/1\"\n[units]\nbandwidth = \"Gbit/s\"\nlatency = \"ns\""),
        "line 3, column 13: `bandwidth` cannot be \"Gbit/s\"; expected one of: GB/s",
    );
}

#[test]
fn a_file_without_hosts_is_refused() {
    assert_eq!(complaint(""), "line 1, column 1: the file needs `host`, one [[host]] at least");
}

#[test]
fn names_and_links_given_twice_are_refused() {
    assert_eq!(
        complaint(&format!("{TWO_HOSTS}[[host]]\nname = \"a\"\ncores = 1")),
        "line 11, column 8: host \"a\" is already given in line 5",
    );
    let link = "[[link]]\nbetween = \"hosts\"\nbw = 1\nlat = 1\n";
    assert_eq!(
        complaint(&format!("{TWO_HOSTS}{link}{link}")),
        "line 15, column 11: the link between hosts is already given in line 11",
    );
    let pair = |from, to| format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nbw = 1\nlat = 1\n");
    assert_eq!(
        complaint(&format!("{TWO_HOSTS}{}{}", pair("a", "b"), pair("b", "a"))),
        "line 16, column 8: the link of \"a\" and \"b\" is already given in line 11",
    );
}

#[test]
fn hosts_and_supernodes_that_are_not_there_are_refused() {
    assert_eq!(
        complaint("[[supernode]]\nname = \"left\"\n[[host]]\nname = \"a\"\nsupernode = \"lfet\""),
        "line 7, column 13: `supernode` cannot be \"lfet\"; did you mean `left`?",
    );
    let two = "[[supernode]]\nname = \"left\"\n[[supernode]]\nname = \"right\"\n";
    assert_eq!(
        complaint(&format!("{two}[[host]]\nname = \"a\"")),
        "line 7, column 1: [[host]] needs `supernode`, the name of a [[supernode]]",
    );
    let link = "[[link]]\nfrom = \"a\"\nto = \"xyz\"\nbw = 1\nlat = 1";
    assert_eq!(
        complaint(&format!("{TWO_HOSTS}{link}")),
        "line 12, column 6: `to` cannot be \"xyz\"; expected one of: a, b",
    );
}

#[test]
fn a_link_says_once_what_it_links() {
    for ends in [
        "",
        "from = \"a\"",
        "between = \"hosts\"\nto = \"a\"",
        "of = \"a\"",
        "from = \"a\"\nto = \"b\"\nof = \"a\"",
    ] {
        let error = read(&format!("{TWO_HOSTS}[[link]]\nbw = 1\nlat = 1\n{ends}")).unwrap_err();
        assert_eq!((error.line, error.kind), (10, FabricErrorKind::Ends), "{ends}");
    }
    let itself = "[[link]]\nfrom = \"a\"\nto = \"a\"\nbw = 1\nlat = 1";
    let itself = complaint(&format!("{TWO_HOSTS}{itself}"));
    assert!(itself.contains("the link is from \"a\" to itself"), "{itself}");
}

#[test]
fn a_file_that_is_no_toml_is_refused_with_line_and_column() {
    let error = read("[[host]]\nname = = 3").unwrap_err();
    assert_eq!((error.line, error.column), (4, 8), "{error}");
    assert!(matches!(error.kind, FabricErrorKind::Syntax { .. }));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*", key in "[a-z]{1,9}") {
        let _ = Fabric::from_toml(&text);
        let _ = read(&format!("[[host]]\n{key} = {text}\n[[link]]\n{key} = {text}"));
    }
}
