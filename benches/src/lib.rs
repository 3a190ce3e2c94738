//! Measurements of the parts of Tutti that run in one process; `tutti bench` measures the whole.
