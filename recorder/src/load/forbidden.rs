//! Why a kernel refuses every program: it is too old, locked down, or a security module forbids it.
//!
//! Asked after a refusal only: what a kernel can do is found by trying (docs/decisions), never by its version.

use std::fs;

/// The oldest kernel with BPF ring buffers and iterators over tasks, which every recording needs.
const OLDEST: (u32, u32) = (5, 10);

/// Settings of the running kernel that forbid BPF programs; empty where they cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelPolicy {
    /// Release, as `uname -r` prints it.
    pub release: String,
    /// Text of /sys/kernel/security/lockdown: all modes, the one in force in brackets.
    pub lockdown: String,
    /// Text of /sys/fs/selinux/enforce: 1 = SELinux refuses what its policy does not allow.
    pub enforce: String,
    /// Domain of this process, as SELinux names it: `user:role:type:level`.
    pub domain: String,
}

impl KernelPolicy {
    /// Reads those of the running kernel.
    pub(super) fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default().trim_matches(['\n', '\0']).to_owned();
        Self {
            release: text("/proc/sys/kernel/osrelease"),
            lockdown: text("/sys/kernel/security/lockdown"),
            enforce: text("/sys/fs/selinux/enforce"),
            domain: text("/proc/self/attr/current"),
        }
    }

    /// That the kernel is too old; None = it is not, or its release is not known.
    pub(super) fn too_old(&self) -> Option<String> {
        let (major, minor) = self.version().filter(|version| *version < OLDEST)?;
        Some(format!(
            "Linux {major}.{minor} is too old: record needs 5.10 or newer (RHEL 8 and its kin have 4.18 and are not supported, \
             RHEL 9 is). Tapes can be analyzed on any machine"
        ))
    }

    /// What forbids programs to who has the capabilities, and what to do about it; None = neither lockdown nor SELinux is
    /// known to. `said` are libbpf's messages.
    pub(super) fn forbids(&self, said: &str) -> Option<String> {
        if self.lockdown.contains("[confidentiality]") {
            return Some(
                "this kernel is locked down (confidentiality): no program may read its memory, so nothing can be traced by BPF. \
                 Boot with lockdown=integrity, or lockdown=none (/sys/kernel/security/lockdown has the mode)"
                    .to_owned(),
            );
        }
        // the verifier says EACCES too, and a log with it
        let by_policy = said.contains("(-13)") && !said.contains("PROG LOAD LOG");
        (self.enforce == "1" && by_policy).then(|| {
            format!(
                "the kernel refuses bpf() (EACCES) although the capabilities are there, and SELinux is enforcing: its policy may \
                 not allow bpf to {}. `ausearch -m avc -ts recent` has what it refused; run record in a domain that may, for example unconfined_t",
                if self.domain.is_empty() { "this domain" } else { &self.domain }
            )
        })
    }

    fn version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some((next()?, next()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(release: &str, lockdown: &str, enforce: &str) -> KernelPolicy {
        KernelPolicy {
            release: release.into(),
            lockdown: lockdown.into(),
            enforce: enforce.into(),
            domain: "system_u:system_r:init_t:s0".into(),
        }
    }

    const REFUSED: &str = "libbpf: Error in bpf_create_map_xattr(rings): Permission denied(-13)";
    const VERIFIER: &str =
        "libbpf: prog 'sys_exit': -- BEGIN PROG LOAD LOG --\ninvalid mem access\nlibbpf: failed to load: (-13)";

    #[test]
    fn old_kernels_are_named() {
        let why = policy("4.18.0-553.el8_10.x86_64", "", "1").too_old().unwrap();
        assert!(why.starts_with("Linux 4.18 is too old") && why.contains("RHEL 8"), "{why}");
        assert!(policy("5.9.16", "", "").too_old().unwrap().starts_with("Linux 5.9 is too old"));
        for release in ["5.10.0-28-amd64", "5.14.0-427.el9.x86_64", "6.18.44", "7.2", "", "strange"] {
            assert_eq!(policy(release, "", "").too_old(), None, "{release}");
        }
    }

    #[test]
    fn only_confidentiality_forbids_tracing() {
        let why = policy("6.1.0", "none integrity [confidentiality]", "").forbids("").unwrap();
        assert!(why.contains("locked down (confidentiality)") && why.contains("lockdown=integrity"), "{why}");
        for lockdown in ["none [integrity] confidentiality", "[none] integrity confidentiality", ""] {
            assert_eq!(policy("6.1.0", lockdown, "0").forbids(REFUSED), None, "{lockdown}");
        }
    }

    #[test]
    fn selinux_is_named_where_it_may_be_the_reason() {
        let why = policy("6.1.0", "", "1").forbids(REFUSED).unwrap();
        assert!(why.contains("system_u:system_r:init_t:s0") && why.contains("ausearch"), "{why}");
        assert_eq!(policy("6.1.0", "", "0").forbids(REFUSED), None, "permissive");
        assert_eq!(policy("6.1.0", "", "1").forbids(VERIFIER), None, "the verifier's own refusal");
        assert_eq!(policy("6.1.0", "", "1").forbids("libbpf: ... (-22)"), None);
    }
}
