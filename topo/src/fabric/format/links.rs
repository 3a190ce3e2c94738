use super::read::{Reader, find, provenance};
use super::section::{At, Section};
use super::{FabricError, FabricErrorKind};
use crate::fabric::{Boundary, Figure, Link};

/// The keys of a `[[link]]`.
pub(super) const LINK_KEYS: &[&str] =
    &["between", "of", "from", "to", "bw", "lat", "rails", "provenance"];

impl Reader<'_> {
    /// Reads the links that hold for all of a kind before those that hold for one.
    pub(super) fn links(&mut self, sections: &[Section]) -> Result<(), FabricError> {
        let mut particular = Vec::new();
        for section in sections {
            let ends = [section.text("from")?.is_some(), section.text("to")?.is_some()];
            if ends != [section.text("between")?.is_none(); 2] {
                return Err(section.whole(FabricErrorKind::Ends));
            }
            match (section.word("between", &boundaries())?, section.text("of")?) {
                (Some(between), None) => {
                    let what = format!("the link between {}", between.value.name());
                    self.once(section, what, between.span.start)?;
                    self.set_all(between.value, link(section)?);
                }
                (between, of) => particular.push((section, between, of)),
            }
        }
        for (section, between, of) in particular {
            match (between, of) {
                (Some(between), Some(of)) => self.set_one(section, between.value, of)?,
                (None, None) => self.set_pair(section)?,
                _ => return Err(section.whole(FabricErrorKind::Ends)),
            }
        }
        Ok(())
    }

    fn set_all(&mut self, between: Boundary, link: Link) {
        match between {
            Boundary::InsideHost => self.hosts.iter_mut().for_each(|host| host.inside = link),
            Boundary::Hosts => self.hosts.iter_mut().for_each(|host| host.port = link),
            Boundary::Supernodes => {
                self.supernodes.iter_mut().for_each(|supernode| supernode.exit = link);
            }
        }
    }

    fn set_one(
        &mut self,
        section: &Section,
        between: Boundary,
        of: At<&str>,
    ) -> Result<(), FabricError> {
        let what = format!("the link between {} of \"{}\"", between.name(), of.value);
        self.once(section, what, of.span.start)?;
        let link = link(section)?;
        match between {
            Boundary::Supernodes => {
                let names = self.supernodes.iter().map(|supernode| &*supernode.name);
                let supernode = find(section, "of", of, names)?;
                self.supernodes[supernode].exit = link;
            }
            Boundary::Hosts | Boundary::InsideHost => {
                let host = self.find_host(section, "of", of)?;
                let host = &mut self.hosts[host];
                let side =
                    if between == Boundary::Hosts { &mut host.port } else { &mut host.inside };
                *side = link;
            }
        }
        Ok(())
    }

    fn set_pair(&mut self, section: &Section) -> Result<(), FabricError> {
        let end = |key| {
            let name = section.need(section.text(key)?, key, "the name of a [[host]]")?;
            let start = name.span.start;
            Ok((self.find_host(section, key, name)?, start))
        };
        let ((one, start), (other, _)) = (end("from")?, end("to")?);
        let names = [&self.hosts[one.min(other)].name, &self.hosts[one.max(other)].name];
        if one == other {
            return Err(section.whole(FabricErrorKind::SameHost { name: names[0].clone() }));
        }
        let what = format!("the link of \"{}\" and \"{}\"", names[0], names[1]);
        self.once(section, what, start)?;
        self.pairs.insert((one.min(other), one.max(other)), link(section)?);
        Ok(())
    }

    fn find_host(
        &self,
        section: &Section,
        key: &'static str,
        name: At<&str>,
    ) -> Result<usize, FabricError> {
        find(section, key, name, self.hosts.iter().map(|host| &*host.name))
    }
}

fn link(section: &Section) -> Result<Link, FabricError> {
    let bw = section.need(section.positive("bw")?, "bw", "a number of GB/s")?;
    let lat = section.need(section.not_negative("lat")?, "lat", "a number of ns")?;
    let provenance = provenance(section)?;
    Ok(Link {
        gb_per_s: Figure { value: bw.value, provenance },
        latency_ns: Figure { value: lat.value, provenance },
        rails: section.count("rails")?.map_or(1, |rails| rails.value),
    })
}

fn boundaries() -> [(&'static str, Boundary); 3] {
    Boundary::ALL.map(|boundary| (boundary.name(), boundary))
}
