//! Sizes as they are typed.

/// Bytes of `64k`, `8M`, `1.5GiB`; units are powers of 1024.
///
/// # Errors
/// It is none, or too large.
pub fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| format!("'{text}' is not a size; write 64k, 8M or 1G"))?;
    let power = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(format!("'{unit}' is not a unit of size; use k, M, G or T")),
    };
    let bytes = number * 1024_f64.powi(power);
    if bytes < 9e18 { Ok(bytes as u64) } else { Err(format!("'{text}' is too large")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("0", 0), ("64k", 64 << 10), ("1.5M", 3 << 19), ("2GiB", 2 << 30), ("1tb", 1 << 40)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1M", "1x", "1.2.3k", "9999999T"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
