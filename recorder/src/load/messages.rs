//! libbpf's messages on failure, and the user's remedy.

use libbpf_rs::PrintLevel;

use super::forbidden::KernelPolicy;
use crate::config::rights;

/// libbpf's last messages, for the error when loading fails.
static MESSAGES: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

/// Keeps libbpf's messages from now on.
pub(super) fn keep() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep_message)));
}

/// Forgets the messages: another attempt begins.
pub(super) fn forget() {
    MESSAGES.lock().map(|mut m| m.clear()).ok();
}

fn keep_message(_: PrintLevel, text: String) {
    if let Ok(mut messages) = MESSAGES.lock()
        && messages.len() < 200
    {
        messages.push(text);
    }
}

/// All of it.
pub(super) fn said() -> String {
    MESSAGES.lock().map(|m| m.join("")).unwrap_or_default()
}

/// Adds the user's remedy; `said` are libbpf's messages.
pub(super) fn explain(error: anyhow::Error, said: &str) -> anyhow::Error {
    let policy = KernelPolicy::read();
    // before all others: neither BTF nor rights would help
    if let Some(why) = policy.too_old() {
        return anyhow::anyhow!(why);
    }
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        return error.context("this kernel has no BTF (/sys/kernel/btf/vmlinux); it needs CONFIG_DEBUG_INFO_BTF=y");
    }
    if let Some(why) = rights::how_to_get().or_else(|| policy.forbids(said)) {
        return anyhow::anyhow!(why);
    }
    if error.chain().any(|cause| cause.to_string().contains("Too many open files")) {
        return error.context("record needs some 200 open files; raise the limit: ulimit -n 1024");
    }
    let tail: String = said.lines().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
    error.context(format!("the kernel's last words:\n{tail}\nloading failed"))
}
