//! Numbers as people read them.

/// Seconds in the unit that leaves one to three digits before the point.
pub(super) fn time(seconds: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let unit = UNITS.into_iter().find(|&(unit, _)| seconds >= 0.9995 * unit);
    let (unit, name) = unit.unwrap_or((1e-6, "µs"));
    let number = seconds / unit;
    match number {
        ..0.95 => format!("{number:.2} {name}"),
        ..9.95 => format!("{number:.1} {name}"),
        _ => format!("{number:.0} {name}"),
    }
}

/// A count of bytes in the largest power of 1024 that is not above it.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u32); 6] =
        [("EiB", 60), ("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.into_iter().find(|&(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

/// A count of things, in the plural unless it is one.
pub(super) fn count(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_or_three_digits() {
        let cases = [
            (0.0, "0.00 µs"),
            (4e-7, "0.40 µs"),
            (1e-6, "1.0 µs"),
            (4.12e-5, "41 µs"),
            (9.999e-4, "1.0 ms"),
            (0.25, "250 ms"),
            (61.4, "61 s"),
        ];
        for (seconds, words) in cases {
            assert_eq!(time(seconds), words);
        }
    }

    #[test]
    fn bytes_come_in_powers_of_1024() {
        let cases = [(0, "0 B"), (1023, "1023 B"), (65_536, "64.0 KiB"), (3 << 29, "1.5 GiB")];
        for (number, words) in cases {
            assert_eq!(bytes(number), words);
        }
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
    }
}
