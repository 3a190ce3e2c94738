//! Measurements of the parts of Tutti that run in one process; `tutti bench` measures the whole. The binary
//! `peers` measures it side by side with other libraries; `benches/peers/run` prepares and starts it.
