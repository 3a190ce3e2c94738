//! Where the system keeps what it allots to this process.

use std::fs;

/// The folders of this process's cgroups that have to do with a controller such as `cpu` or `memory`,
/// each from the root down to the process's own: of version 2, and of version 1 where it is in use.
pub fn folders(controller: &str) -> Vec<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().flat_map(|line| folders_of_line(line, controller)).collect()
}

/// Those of one line of /proc/self/cgroup: `hierarchy:controllers:path`.
fn folders_of_line(line: &str, controller: &str) -> Vec<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let root = match controllers {
        "" => "/sys/fs/cgroup".to_string(),
        some if some.split(',').any(|c| c == controller) => format!("/sys/fs/cgroup/{some}"),
        _ => return Vec::new(),
    };
    let names = path.split('/').filter(|name| !name.is_empty());
    let below = names.scan(root.clone(), |folder, name| {
        *folder = format!("{folder}/{name}");
        Some(folder.clone())
    });
    std::iter::once(root.clone()).chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_on_the_way_counts_and_other_controllers_do_not() {
        let folders = |line| folders_of_line(line, "cpu");
        assert_eq!(
            folders("0::/a/b"),
            ["/sys/fs/cgroup", "/sys/fs/cgroup/a", "/sys/fs/cgroup/a/b"]
        );
        assert_eq!(folders("3:cpu,cpuacct:/"), ["/sys/fs/cgroup/cpu,cpuacct"]);
        assert!(folders("4:memory:/a").is_empty() && folders("nonsense").is_empty());
    }
}
