use std::fmt;

/// A number and where it is from. The unit is in the name of the field that holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// Where it is from.
    pub provenance: Provenance,
}

/// Where a figure is from, the most trustworthy first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provenance {
    /// Measured on this fabric.
    Measured,
    /// From the data sheet of the hardware.
    Spec,
    /// Typical for links of its kind; nobody looked at this one.
    Assumed,
}

/// One kind of connection, in one direction; the other direction has the same figures at the same
/// time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Capacity of one rail in 10^9 bytes per second, above 0.
    pub gb_per_s: Figure,
    /// Time from the start of a small message's send to its receipt, in nanoseconds.
    pub latency_ns: Figure,
    /// How many such links lie side by side, at least one. One message uses one of them.
    pub rails: u32,
}

/// What a message passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boundary {
    /// Nothing: both ranks are on one host.
    InsideHost,
    /// The ports of two hosts.
    Hosts,
    /// The ports of two hosts and the exits of their supernodes.
    Supernodes,
}

impl Figure {
    /// A number from nowhere.
    pub(super) fn assumed(value: f64) -> Figure {
        Figure { value, provenance: Provenance::Assumed }
    }
}

impl Link {
    /// A single rail of assumed figures.
    pub(super) fn assumed(gb_per_s: f64, latency_ns: f64) -> Link {
        Link {
            gb_per_s: Figure::assumed(gb_per_s),
            latency_ns: Figure::assumed(latency_ns),
            rails: 1,
        }
    }

    /// The less trustworthy of its figures.
    pub fn provenance(&self) -> Provenance {
        self.gb_per_s.provenance.max(self.latency_ns.provenance)
    }
}

impl Provenance {
    pub(super) const ALL: [Provenance; 3] =
        [Provenance::Measured, Provenance::Spec, Provenance::Assumed];

    /// The word in files.
    pub fn name(self) -> &'static str {
        match self {
            Provenance::Measured => "measured",
            Provenance::Spec => "spec",
            Provenance::Assumed => "assumed",
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Boundary {
    pub(super) const ALL: [Boundary; 3] =
        [Boundary::InsideHost, Boundary::Hosts, Boundary::Supernodes];

    /// The word in files.
    pub fn name(self) -> &'static str {
        match self {
            Boundary::InsideHost => "inside-host",
            Boundary::Hosts => "hosts",
            Boundary::Supernodes => "supernodes",
        }
    }
}
