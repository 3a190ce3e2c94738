use std::fmt;
use std::ops::RangeInclusive;

/// Ports that may be listened on, as in `50000-50015,50100`: single ports and ranges, used in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(Vec<RangeInclusive<u16>>);

impl PortRange {
    /// Reads a list of ports and ranges.
    ///
    /// # Errors
    ///
    /// What is expected, and the part that is something else.
    pub fn parse(text: &str) -> Result<PortRange, String> {
        let part = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port != 0);
            let range = port(first).zip(port(last)).filter(|(first, last)| first <= last);
            let wrong =
                || format!("ports or ranges as in 50000-50015,50100 are expected, not {part:?}");
            range.map(|(first, last)| first..=last).ok_or_else(wrong)
        };
        text.split(',').map(part).collect::<Result<_, _>>().map(PortRange)
    }

    /// Every port, in order. There is at least one.
    pub fn iter(&self) -> impl Iterator<Item = u16> + Clone {
        self.0.iter().cloned().flatten()
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_come_in_the_order_of_the_text() {
        let range = PortRange::parse("50100, 50000-50002,65535").unwrap();
        assert_eq!(range.iter().collect::<Vec<_>>(), [50100, 50000, 50001, 50002, 65535]);
        assert_eq!(range.to_string(), "50100,50000-50002,65535");
    }

    #[test]
    fn what_is_no_port_is_named() {
        for text in ["", "0", "1-", "9-7", "1,,2", "70000", "x", "1-2-3"] {
            let problem = PortRange::parse(text).unwrap_err();
            assert!(problem.contains("50000-50015,50100"), "{text}: {problem}");
        }
        assert!(PortRange::parse("5,9-7").unwrap_err().contains("\"9-7\""));
    }
}
