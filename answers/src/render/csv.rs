//! Cells of CSV (RFC 4180).

/// Whether a spreadsheet could take `field` for a formula. A negative number is not one.
fn looks_like_a_formula(field: &[u8]) -> bool {
    match field {
        [b'=' | b'+' | b'@' | b'\t' | b'\r', ..] => true,
        [b'-', rest @ ..] => !rest.iter().all(|b| b.is_ascii_digit() || *b == b'.'),
        _ => false,
    }
}

/// Appends `field`, quoted if it has a special character of CSV, or begins like a formula.
pub fn field(out: &mut Vec<u8>, field: &[u8]) {
    if !field.iter().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) && !looks_like_a_formula(field) {
        return out.extend_from_slice(field);
    }
    out.push(b'"');
    for byte in field {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_quoted_when_they_must_be() {
        let text = |bytes: &[u8]| {
            let mut out = Vec::new();
            super::field(&mut out, bytes);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(b"plain"), "plain");
        assert_eq!(text(b"fd: 3, \"x\""), "\"fd: 3, \"\"x\"\"\"");
        for formula in ["=cmd|'x'!A1", "+1+2", "-1+2", "-x", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(text(formula.as_bytes()), format!("\"{formula}\""));
        }
        for number in ["-1", "-12.500", "0", ""] {
            assert_eq!(text(number.as_bytes()), number);
        }
    }
}
