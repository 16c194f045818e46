//! Whether the kernel shows its addresses.

use std::fs;
use std::sync::OnceLock;

use caps::{CapSet, Capability};

/// Why this process found no addresses in /proc/kallsyms at its first read (it has fewer rights later), and the remedy.
pub(crate) fn hidden() -> &'static str {
    static WHY: OnceLock<String> = OnceLock::new();
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok();
    let syslog = || caps::has_cap(None, CapSet::Effective, Capability::CAP_SYSLOG).unwrap_or(false);
    WHY.get_or_init(|| why_hidden(read("kptr_restrict"), read("perf_event_paranoid"), syslog()))
}

/// The kernel's own test: kallsyms_show_value in kernel/ksyms_common.c. Settings are None if they cannot be read.
fn why_hidden(kptr_restrict: Option<i32>, paranoid: Option<i32>, syslog: bool) -> String {
    let remedy = match (kptr_restrict, paranoid) {
        (Some(kptr @ 2..), _) => {
            format!("sysctl kernel.kptr_restrict={kptr} hides them from everybody, 1 shows them to CAP_SYSLOG")
        }
        _ if syslog => return "/proc/kallsyms has no addresses of the kernel's entry code".to_owned(),
        (Some(1), _) => "it takes CAP_SYSLOG".to_owned(),
        (Some(_), Some(paranoid @ 2..)) => {
            format!("it takes CAP_SYSLOG, or sysctl kernel.perf_event_paranoid=1 (it is {paranoid})")
        }
        _ => "it takes CAP_SYSLOG, or sysctl kernel.kptr_restrict=0 and kernel.perf_event_paranoid=1".to_owned(),
    };
    format!("addresses of the kernel are hidden ({remedy})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_hides_addresses_is_named() {
        let why = |kptr, paranoid, syslog| why_hidden(Some(kptr), Some(paranoid), syslog);
        assert!(why(0, 2, false).contains("CAP_SYSLOG, or sysctl kernel.perf_event_paranoid=1 (it is 2)"));
        assert!(!why(0, 2, false).contains("kptr_restrict"));
        assert!(why(1, 2, false).contains("(it takes CAP_SYSLOG)"));
        assert!(why(2, -1, true).contains("kptr_restrict=2 hides them from everybody"));
        // nothing that is known of hides them
        assert!(!why(0, 2, true).contains("hidden"));
        assert!(why_hidden(None, None, false).contains("CAP_SYSLOG"));
    }
}
