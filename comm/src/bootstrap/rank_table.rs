//! Rank tables of version 1.0 and 1.2: JSON files that some clusters write for their jobs.

use std::collections::BTreeSet;
use std::fs;

use serde::Deserialize;

/// What a table tells that is needed to start.
#[derive(Debug)]
pub(super) struct RankTable {
    pub(super) size: u32,
    /// The host of rank 0; 127.0.0.1 if all ranks are on one.
    pub(super) host: String,
    /// Equal for equal tables.
    pub(super) mark: String,
}

#[derive(Deserialize)]
struct Table {
    version: String,
    status: String,
    server_list: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    server_id: String,
    host_ip: Option<String>,
    device: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    rank_id: String,
}

impl RankTable {
    /// Reads the file of that name.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, or what is wrong with it.
    pub(super) fn read(path: &str) -> Result<RankTable, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
        RankTable::parse(&text)
    }

    /// Reads a table. Fields that starting does not need are not looked at.
    ///
    /// # Errors
    ///
    /// What is wrong with the table.
    fn parse(text: &str) -> Result<RankTable, String> {
        let wrong = |error| format!("is no rank table of version 1.0 or 1.2: {error}");
        let table: Table = serde_json::from_str(text).map_err(wrong)?;
        if !["1.0", "1.2"].contains(&table.version.as_str()) {
            return Err(format!("has version {:?}; 1.0 and 1.2 can be read", table.version));
        }
        if table.status != "completed" {
            return Err(format!("has status {:?}, so it is not complete yet", table.status));
        }
        let size = table.count_ranks()?;
        let holds = |server: &&Server| server.device.iter().any(|device| device.rank_id == "0");
        let first = table.server_list.iter().find(holds).ok_or("has no rank 0")?;
        let host = match table.server_list.len() {
            1 => "127.0.0.1".into(),
            _ => first.host_ip.clone().unwrap_or_else(|| first.server_id.clone()),
        };
        Ok(RankTable { size, host, mark: format!("rank table {text}") })
    }
}

impl Table {
    /// How many ranks there are, if they are numbered from 0 without a gap.
    fn count_ranks(&self) -> Result<u32, String> {
        let mut seen = BTreeSet::new();
        for device in self.server_list.iter().flat_map(|server| &server.device) {
            let id = &device.rank_id;
            let rank: u32 = id.parse().map_err(|_| format!("has a rank_id {id:?}"))?;
            if !seen.insert(rank) {
                return Err(format!("has rank {rank} twice"));
            }
        }
        let gap = (0..).zip(&seen).find(|(expected, rank)| expected != *rank);
        match gap {
            Some((missing, _)) => Err(format!("has {} ranks, but no rank {missing}", seen.len())),
            None => Ok(seen.len() as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of servers with these fields and rank ids.
    fn table(version: &str, servers: &[(&str, &[u32])]) -> String {
        let server = |(fields, ranks): &(&str, &[u32])| {
            let device =
                |rank| format!(r#"{{"device_id":"0","device_ip":"10.9.0.1","rank_id":"{rank}"}}"#);
            let devices: Vec<_> = ranks.iter().map(device).collect();
            format!(r#"{{{fields},"device":[{}]}}"#, devices.join(","))
        };
        let servers: Vec<_> = servers.iter().map(server).collect();
        let list = servers.join(",");
        format!(r#"{{"version":"{version}","status":"completed","server_list":[{list}]}}"#)
    }

    const A: &str = r#""server_id":"10.0.0.1""#;
    const B: &str = r#""server_id":"pod-b","host_ip":"10.0.0.2""#;

    #[test]
    fn host_of_rank_0_and_size_are_found() {
        let found = |table: &str| {
            let RankTable { size, host, .. } = RankTable::parse(table).unwrap();
            (size, host)
        };
        let ranks = |size: u32, host: &str| (size, host.to_string());
        assert_eq!(found(&table("1.0", &[(A, &[0, 1]), (B, &[2, 3])])), ranks(4, "10.0.0.1"));
        assert_eq!(found(&table("1.2", &[(A, &[2, 3]), (B, &[1, 0])])), ranks(4, "10.0.0.2"));
        assert_eq!(found(&table("1.0", &[(A, &[0, 1])])), ranks(2, "127.0.0.1"));
    }

    #[test]
    fn tables_that_make_no_sense_are_refused_with_the_reason() {
        let refused = |table: &str| RankTable::parse(table).unwrap_err();
        assert!(refused(&table("1.0", &[(A, &[0, 1]), (B, &[1])])).contains("rank 1 twice"));
        assert!(refused(&table("1.0", &[(A, &[0]), (B, &[2])])).contains("no rank 1"));
        assert!(refused(&table("1.0", &[(A, &[])])).contains("no rank 0"));
        assert!(refused(&table("2.0", &[(A, &[0])])).contains("1.0 and 1.2 can be read"));
        assert!(refused("{}").contains("version"));
        let early = table("1.0", &[(A, &[0])]).replace("completed", "initializing");
        assert!(refused(&early).contains("not complete yet"));
    }
}
