use std::collections::BTreeMap;

use toml::de::DeTable;

use super::error::line_and_column;
use super::links::LINK_KEYS;
use super::section::{At, Section};
use super::{FabricError, FabricErrorKind};
use crate::fabric::discovery::{LONE_SUPERNODE, TCP_ACROSS, assumed_host};
use crate::fabric::{Fabric, Figure, Host, Link, Place, Provenance, Supernode};

/// The most ranks that a file can have in all.
const MOST_RANKS: u32 = 1 << 20;

impl Fabric {
    /// Reads a file of the format `fabric/1`.
    ///
    /// ```toml
    /// schema = "fabric/1"
    ///
    /// [units]                        # mandatory, so that no figure is read in another unit
    /// bandwidth = "GB/s"             # 10^9 bytes per second, per direction
    /// latency = "ns"
    ///
    /// [[supernode]]                  # may be left out if there is only one
    /// name = "pod0"
    ///
    /// [[host]]
    /// name = "a"
    /// supernode = "pod0"             # may be left out if there is only one
    /// numa = 2                       # NUMA nodes; 1 if left out
    /// cores = 64                     # cores for the job, may be a fraction
    /// ranks = 8                      # how many ranks run here; 1 if left out
    /// fold = 12                      # GB/s at which a core folds; assumed if left out
    /// provenance = "measured"        # of `fold`: "measured", "spec" or "assumed" (if left out)
    ///
    /// [[link]]
    /// between = "hosts"              # "inside-host", "hosts" (the port of each host)
    ///                                # or "supernodes" (the exit of each supernode)
    /// of = "a"                       # only that host or supernode; all others if left out
    /// bw = 12.5                      # per rail
    /// lat = 3000
    /// rails = 2                      # 1 if left out
    /// provenance = "spec"            # "assumed" if left out
    ///
    /// [[link]]
    /// from = "a"                     # or: a link that just these two hosts have, both ways,
    /// to = "b"                       # instead of their ports
    /// bw = 50
    /// lat = 900
    /// ```
    ///
    /// Ranks are numbered host by host in the order of the file and spread evenly over the NUMA nodes
    /// of a host, neighbours together. Kinds of links that the file leaves out have assumed figures.
    ///
    /// # Errors
    ///
    /// With line and column, for everything that the format does not have: unknown keys, values of
    /// a wrong type, missing units, names used twice, hosts and supernodes that are not there.
    pub fn from_toml(text: &str) -> Result<Fabric, FabricError> {
        let root = DeTable::parse(text).map_err(|error| {
            let message = error.message().to_owned();
            FabricError::at(text, error.span().unwrap_or(0..0), FabricErrorKind::Syntax { message })
        })?;
        const KEYS: &[&str] = &["schema", "units", "supernode", "host", "link"];
        let root = Section::new(text, "the file", root.get_ref(), 0..0, KEYS)?;
        read_head(&root)?;
        let mut reader = Reader::new(text);
        for supernode in root.tables("supernode", "[[supernode]]", &["name"])? {
            reader.supernode(&supernode)?;
        }
        if reader.supernodes.is_empty() {
            reader.supernodes.push(supernode(LONE_SUPERNODE));
        }
        for host in root.tables("host", "[[host]]", HOST_KEYS)? {
            reader.host(&host)?;
        }
        root.need(reader.hosts.first(), "host", "one [[host]] at least")?;
        reader.links(&root.tables("link", "[[link]]", LINK_KEYS)?)?;
        Ok(reader.finish())
    }
}

const HOST_KEYS: &[&str] = &["name", "supernode", "numa", "cores", "ranks", "fold", "provenance"];

/// Schema and units: there is one of each, and a file must say that it has just these.
fn read_head(root: &Section) -> Result<(), FabricError> {
    let schema = root.word("schema", &[("fabric/1", ())])?;
    root.need(schema, "schema", "the string \"fabric/1\"")?;
    const EXPECTED: &str = "with bandwidth = \"GB/s\" and latency = \"ns\"";
    let units = root.table("units", "[units]", &["bandwidth", "latency"])?;
    let units = root.need(units, "units", EXPECTED)?;
    units.need(units.word("bandwidth", &[("GB/s", ())])?, "bandwidth", "the string \"GB/s\"")?;
    units.need(units.word("latency", &[("ns", ())])?, "latency", "the string \"ns\"")?;
    Ok(())
}

/// What has been read, and where each thing was, so that a second one can name the first.
pub(super) struct Reader<'a> {
    text: &'a str,
    pub(super) supernodes: Vec<Supernode>,
    pub(super) hosts: Vec<Host>,
    pub(super) pairs: BTreeMap<(usize, usize), Link>,
    places: Vec<Place>,
    first_lines: BTreeMap<String, usize>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        Reader {
            text,
            supernodes: Vec::new(),
            hosts: Vec::new(),
            pairs: BTreeMap::new(),
            places: Vec::new(),
            first_lines: BTreeMap::new(),
        }
    }

    fn finish(self) -> Fabric {
        let Reader { supernodes, hosts, pairs, places, .. } = self;
        Fabric { supernodes, hosts, pairs, places }
    }

    fn supernode(&mut self, section: &Section) -> Result<(), FabricError> {
        let name = section.need(section.text("name")?, "name", "a string")?;
        self.once(section, format!("supernode \"{}\"", name.value), name.span.start)?;
        self.supernodes.push(supernode(name.value));
        Ok(())
    }

    fn host(&mut self, section: &Section) -> Result<(), FabricError> {
        let name = section.need(section.text("name")?, "name", "a string")?;
        self.once(section, format!("host \"{}\"", name.value), name.span.start)?;
        let mut host = assumed_host(name.value, self.supernode_of(section)?);
        host.numa_nodes = section.count("numa")?.map_or(1, |numa| numa.value);
        let cores = section.need(section.positive("cores")?, "cores", "a number above 0")?;
        host.cores = cores.value;
        let provenance = provenance(section)?;
        if let Some(fold) = section.positive("fold")? {
            host.fold_gb_per_s = Figure { value: fold.value, provenance };
        }
        self.place_ranks(section, host.numa_nodes)?;
        self.hosts.push(host);
        Ok(())
    }

    fn supernode_of(&self, section: &Section) -> Result<usize, FabricError> {
        let name = section.text("supernode")?;
        if name.is_none() && self.supernodes.len() == 1 {
            return Ok(0);
        }
        let name = section.need(name, "supernode", "the name of a [[supernode]]")?;
        find(section, "supernode", name, self.supernodes.iter().map(|known| &*known.name))
    }

    /// Gives the ranks of the next host their places.
    fn place_ranks(&mut self, section: &Section, numa_nodes: u32) -> Result<(), FabricError> {
        let ranks = section.count("ranks")?.unwrap_or(At { value: 1, span: 0..0 });
        if ranks.value > MOST_RANKS - self.places.len() as u32 {
            let kind = FabricErrorKind::TooManyRanks { most: MOST_RANKS };
            return Err(section.error(ranks.span, kind));
        }
        let host = self.hosts.len();
        let place = |rank: u32| {
            let numa_node = u64::from(rank) * u64::from(numa_nodes) / u64::from(ranks.value);
            Place { host, numa_node: numa_node as u32 }
        };
        self.places.extend((0..ranks.value).map(place));
        Ok(())
    }

    /// Notes that the file gives `what` at a byte, unless it did before.
    pub(super) fn once(
        &mut self,
        section: &Section,
        what: String,
        byte: usize,
    ) -> Result<(), FabricError> {
        let (line, _) = line_and_column(self.text, byte);
        match self.first_lines.get(&what) {
            Some(&first_line) => {
                let kind = FabricErrorKind::Duplicate { what, first_line };
                Err(section.error(byte..byte, kind))
            }
            None => {
                self.first_lines.insert(what, line);
                Ok(())
            }
        }
    }
}

fn supernode(name: &str) -> Supernode {
    Supernode { name: name.to_owned(), exit: TCP_ACROSS.link() }
}

pub(super) fn provenance(section: &Section) -> Result<Provenance, FabricError> {
    let words = Provenance::ALL.map(|provenance| (provenance.name(), provenance));
    let word = section.word("provenance", &words)?;
    Ok(word.map_or(Provenance::Assumed, |word| word.value))
}

pub(super) fn find<'k>(
    section: &Section,
    key: &'static str,
    name: At<&str>,
    mut known: impl Iterator<Item = &'k str> + Clone,
) -> Result<usize, FabricError> {
    let names = known.clone();
    let found = known.position(|known| known == name.value);
    found.ok_or_else(|| section.unknown_word(key, name, names))
}
