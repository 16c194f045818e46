//! Numbers that the BPF programs write and the tape stores unchanged: checks that both sides agree on them.

use systape_abi::Abi;
use systape_bpf::values::{
    abi, block_cause, byte_status, call_state, fork_flags, ledger_reason, signal_flags, signal_info, stack_of,
};
use systape_format::model::{
    BlockCause, ByteStatus, CallState, FORK_SHARES_FILES, FORK_SHARES_FS, FORK_THREAD, LedgerReason, SIGNAL_BLOCKED,
    SIGNAL_GROUP, SIGNAL_HANDLED, SIGNAL_IGNORED, SIGNAL_INTERRUPT, SIGNAL_PDEATHSIG, SIGNAL_SENDER_EXITING,
    SIGNAL_SENDER_KTHREAD, SignalInfo, StackOf,
};

macro_rules! same {
    ($($wire:ident: $($value:ident = $tape:expr),+;)+) => {
        $($(const _: () = assert!($wire::$value as u32 == $tape as u32);)+)+
    };
}

same! {
    abi: NONE = Abi::Unknown, X86_64 = Abi::X86_64, I386 = Abi::I386, X32 = Abi::X32, AARCH64 = Abi::Aarch64;
    call_state: COMPLETE = CallState::Complete, IN_FLIGHT = CallState::InFlight, KILLED = CallState::Killed,
        NO_RETURN = CallState::NoReturn, BEGAN_BEFORE = CallState::BeganBefore, CLONE_CHILD = CallState::CloneChild,
        DENIED = CallState::Denied, LOST_ENTER = CallState::LostEnter;
    byte_status: WHOLE = ByteStatus::Whole, TRUNCATED = ByteStatus::Truncated, NOT_RESIDENT = ByteStatus::NotResident,
        LATE = ByteStatus::Late, LATE_TRUNCATED = ByteStatus::LateTruncated, NO_BUFFER = ByteStatus::NoBuffer;
    block_cause: UNKNOWN = BlockCause::Unknown, DIRECT = BlockCause::Direct, DIRTIER = BlockCause::Dirtier,
        CGROUP = BlockCause::CgroupOwner, KTHREAD = BlockCause::KernelThread, FLUSH = BlockCause::Flush;
    signal_info: SIGINFO = SignalInfo::Siginfo, NOINFO = SignalInfo::NoInfo, PRIV = SignalInfo::Priv;
    signal_flags: INTERRUPT = SIGNAL_INTERRUPT, SENDER_EXITING = SIGNAL_SENDER_EXITING,
        SENDER_KTHREAD = SIGNAL_SENDER_KTHREAD, BLOCKED = SIGNAL_BLOCKED, IGNORED = SIGNAL_IGNORED,
        HANDLED = SIGNAL_HANDLED, PDEATHSIG = SIGNAL_PDEATHSIG, GROUP = SIGNAL_GROUP;
    fork_flags: THREAD = FORK_THREAD, SHARES_FILES = FORK_SHARES_FILES, SHARES_FS = FORK_SHARES_FS;
    stack_of: SYSCALL = StackOf::Syscall, SWITCH = StackOf::Switch, WAKEUP = StackOf::Wakeup, BLOCK = StackOf::Block,
        SIGNAL = StackOf::Signal, SAMPLE = StackOf::Sample, ASLEEP = StackOf::Asleep;
    ledger_reason: LOST = LedgerReason::Lost, FILTERED = LedgerReason::Filtered, OVER_SHARE = LedgerReason::OverShare,
        CHECKED = LedgerReason::Checked;
}
