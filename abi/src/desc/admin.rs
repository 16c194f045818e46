//! Security, keys, modules, tracing and the machine itself.

use super::calls;
use crate::flags::{
    BPF, DELETE_MODULE, GETRANDOM, KEXEC, KEXEC_FILE, KEYCTL, LANDLOCK_CREATE, LANDLOCK_RULE, LANDLOCK_SELF, LSM_ATTR,
    MODULE_INIT, REBOOT, SECCOMP, SECCOMP_FILTER, SYSLOG,
};

calls! {
    uname(name: Ptr) -> Int;
    sysinfo(info: Ptr) -> Int;
    syslog(type: Flags(&SYSLOG), buf: Ptr, len: Int) -> Int;
    uselib(library: Path) -> Int;
    vhangup() -> Int;
    reboot(magic1: Hex32, magic2: Hex32, cmd: Flags(&REBOOT), arg: Ptr) -> Int;
    sethostname(name: BufIn{len_arg: 1}, len: Int) -> Int;
    setdomainname(name: BufIn{len_arg: 1}, len: Int) -> Int;
    iopl(level: UInt) -> Int;
    ioperm(from: Hex, num: ULong, turn_on: Int) -> Int;
    init_module(umod: Ptr, len: Size, uargs: Str) -> Int;
    delete_module(name_user: Str, flags: Flags(&DELETE_MODULE)) -> Int;
    kexec_load(entry: Ptr, nr_segments: ULong, segments: Ptr, flags: Flags(&KEXEC)) -> Int;
    add_key(_type: Str, _description: Str, _payload: BufIn{len_arg: 3}, plen: Size, ringid: Int) -> Int;
    request_key(_type: Str, _description: Str, _callout_info: Str, destringid: Int) -> Int;
    keyctl(option: Flags(&KEYCTL), arg2: Hex, arg3: Hex, arg4: Hex, arg5: Hex) -> Int;
    finit_module(fd: Fd, uargs: Str, flags: Flags(&MODULE_INIT)) -> Int;
    seccomp(op: Flags(&SECCOMP), flags: Flags(&SECCOMP_FILTER), uargs: Ptr) -> Int, MaybeFd;
    getrandom(ubuf: BufOut, len: Size, flags: Flags(&GETRANDOM)) -> Int;
    kexec_file_load(kernel_fd: Fd, initrd_fd: Fd, cmdline_len: Size, cmdline_ptr: Str, flags: Flags(&KEXEC_FILE)) -> Int;
    bpf(cmd: Flags(&BPF), uattr: Ptr, size: UInt) -> Int, MaybeFd;
    uretprobe() -> Int;
    uprobe() -> Int;
    landlock_create_ruleset(attr: Ptr, size: Size, flags: Flags(&LANDLOCK_CREATE)) -> Int, MaybeFd;
    landlock_add_rule(ruleset_fd: Fd, rule_type: Flags(&LANDLOCK_RULE), rule_attr: Ptr, flags: UInt) -> Int;
    landlock_restrict_self(ruleset_fd: Fd, flags: Flags(&LANDLOCK_SELF)) -> Int;
    lsm_get_self_attr(attr: Flags(&LSM_ATTR), ctx: Ptr, size: Ptr, flags: UInt) -> Int;
    lsm_set_self_attr(attr: Flags(&LSM_ATTR), ctx: Ptr, size: Size, flags: UInt) -> Int;
    lsm_list_modules(ids: Ptr, size: Ptr, flags: UInt) -> Int;
}
