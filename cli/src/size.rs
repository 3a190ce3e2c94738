//! Sizes in bytes on a command line.

/// Reads `8`, `64K`, `3MB`, `2GiB`: K, M and G are powers of 1024, with or without their B.
///
/// # Errors
///
/// In words, for anything else and for what 64 bits do not hold.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        unit => return Err(format!("unknown unit {unit}; possible are K, M, G")),
    };
    let number: u64 =
        digits.parse().map_err(|_| "a whole number of bytes is expected, as in 64K")?;
    number.checked_mul(unit).ok_or_else(|| "too large".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("17"), Ok(17));
        assert_eq!(parse("64k"), Ok(65536));
        assert_eq!(parse("3MB"), Ok(3 << 20));
        assert_eq!(parse("2GiB"), Ok(2 << 30));
    }

    #[test]
    fn anything_else_is_refused() {
        let too_large = ["99999999999G", "18446744073709551616"];
        for wrong in ["", "K", "-1", "1.5M", "5T", "1 K", "x8"].into_iter().chain(too_large) {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
