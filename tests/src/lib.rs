//! What the whole-library tests share: reference results, ranks as threads or as processes, and
//! ranks on a virtual clock.

pub mod deal;
pub mod namespaces;
pub mod processes;
pub mod ranks;
pub mod reference;
pub mod virtual_time;
