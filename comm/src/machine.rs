//! What a rank finds out of the machine it is on, for programs that show or check it.

pub use crate::cgroup::folders as cgroup_folders;
pub use crate::cores::{Cores, shared as shared_cores, usable as cores};
pub use crate::host::{key as host_key, name as host_name, numa_node};
pub use crate::interfaces::{Interface, of_this_host as interfaces};
