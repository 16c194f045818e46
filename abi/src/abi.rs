//! Which syscall table a call was made through.

/// The ABI of one syscall. The discriminants are stored in tapes: append only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Abi {
    /// Not recorded, or unknown to this version; such calls have numbers but no names.
    #[default]
    Unknown = 0,
    /// 64-bit calls on x86.
    X86_64 = 1,
    /// 32-bit calls on x86: `int 0x80`, `sysenter`, 32-bit processes.
    I386 = 2,
    /// 32-bit pointers in 64-bit mode; numbers carry bit `0x4000_0000`.
    X32 = 3,
    /// 64-bit calls on arm64.
    Aarch64 = 4,
}

impl Abi {
    /// Every ABI that has a syscall table, in order of discriminant.
    pub(crate) const KNOWN: [Self; 4] = [Self::X86_64, Self::I386, Self::X32, Self::Aarch64];

    /// The ABI stored as `raw` in a tape; values of newer versions become [`Abi::Unknown`].
    pub const fn from_raw(raw: u8) -> Self {
        match raw {
            1 => Self::X86_64,
            2 => Self::I386,
            3 => Self::X32,
            4 => Self::Aarch64,
            _ => Self::Unknown,
        }
    }

    /// The name used in listings and JSON, e.g. `x86_64`; `unknown` for [`Abi::Unknown`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::X86_64 => "x86_64",
            Self::I386 => "i386",
            Self::X32 => "x32",
            Self::Aarch64 => "aarch64",
        }
    }
}

impl std::fmt::Display for Abi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_values_round_trip_and_unknown_ones_stay_harmless() {
        for abi in Abi::KNOWN {
            assert_eq!(Abi::from_raw(abi as u8), abi);
        }
        assert_eq!(Abi::from_raw(0), Abi::Unknown);
        assert_eq!(Abi::from_raw(200), Abi::Unknown);
    }
}
