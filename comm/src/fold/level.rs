//! Which vector instructions the kernels use.

use std::fmt;

/// A set of vector instructions; a later one includes the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every CPU of this architecture has: SSE2 on x86-64, NEON on aarch64.
    Baseline,
    /// AVX2 and F16C (x86-64).
    Avx2,
    /// AVX-512 F, BW, DQ and VL (x86-64).
    Avx512,
}

impl Level {
    /// Every level, lowest first.
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// The highest level that this CPU and its operating system support.
    pub fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if !(has!("avx2") && has!("f16c")) {
                return Level::Baseline;
            }
            if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
                return Level::Avx512;
            }
            Level::Avx2
        }
        #[cfg(not(target_arch = "x86_64"))]
        Level::Baseline
    }

    /// The name in reports and settings; [`from_name`](Self::from_name) reads it back.
    pub fn name(self) -> &'static str {
        match self {
            Level::Baseline => "baseline",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// The level with this name.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no such level or this CPU does not have it.
    pub fn from_name(name: &str) -> Result<Level, String> {
        let best = Level::detect();
        match Level::ALL.into_iter().find(|level| level.name() == name) {
            Some(level) if level <= best => Ok(level),
            Some(level) => Err(format!("this CPU does not have {level}; its best is {best}")),
            None => Err(format!("unknown vector level {name:?}; we know baseline, avx2, avx512")),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_up_to_what_the_cpu_has() {
        for level in Level::ALL {
            match Level::from_name(level.name()) {
                Ok(found) => assert!(found == level && level <= Level::detect()),
                Err(why) => assert!(level > Level::detect() && why.contains(level.name())),
            }
        }
    }

    #[test]
    fn unknown_name_is_an_error_that_lists_the_names() {
        let why = Level::from_name("sse9").unwrap_err();
        assert!(why.contains("\"sse9\"") && why.contains("avx512"), "{why}");
    }
}
