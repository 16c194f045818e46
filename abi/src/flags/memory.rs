//! Flags of memory calls.

use super::{FlagForm, flag_sets};

flag_sets! {
    /// Protection of a mapping.
    PROT: FlagForm::Bits, wide, "PROT_";
    [general: PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4, PROT_SEM = 8, PROT_GROWSDOWN = 0x1000000,
        PROT_GROWSUP = 0x2000000]

    /// [`PROT`] with the bits only arm64 has.
    PROT_ARM64: FlagForm::Bits, wide, "PROT_";
    [general: PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4, PROT_SEM = 8]
    [uapi "arch/arm64/include/uapi/asm/mman.h": PROT_BTI = 0x10, PROT_MTE = 0x20]
    [general: PROT_GROWSDOWN = 0x1000000, PROT_GROWSUP = 0x2000000]

    /// Flags of `mmap` on x86: the type in the low four bits, then bits.
    MMAP: FlagForm::Mixed { mask: 15 }, wide, "MAP_";
    [general: MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_SHARED_VALIDATE = 3]
    [uapi "asm-generic/mman-common.h": MAP_DROPPABLE = 8]
    [general: MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20]
    [uapi "asm-generic/mman-common.h": MAP_32BIT = 0x40, MAP_ABOVE4G = 0x80]
    [general: MAP_GROWSDOWN = 0x100, MAP_DENYWRITE = 0x800, MAP_EXECUTABLE = 0x1000, MAP_LOCKED = 0x2000,
        MAP_NORESERVE = 0x4000, MAP_POPULATE = 0x8000, MAP_NONBLOCK = 0x10000, MAP_STACK = 0x20000,
        MAP_HUGETLB = 0x40000, MAP_SYNC = 0x80000, MAP_FIXED_NOREPLACE = 0x100000]
    [uapi "asm-generic/mman-common.h": MAP_UNINITIALIZED = 0x4000000]

    /// [`MMAP`] without the bits only x86 has.
    MMAP_ARM64: FlagForm::Mixed { mask: 15 }, wide, "MAP_";
    [general: MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_SHARED_VALIDATE = 3]
    [uapi "asm-generic/mman-common.h": MAP_DROPPABLE = 8]
    [general: MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20, MAP_GROWSDOWN = 0x100, MAP_DENYWRITE = 0x800,
        MAP_EXECUTABLE = 0x1000, MAP_LOCKED = 0x2000, MAP_NORESERVE = 0x4000, MAP_POPULATE = 0x8000,
        MAP_NONBLOCK = 0x10000, MAP_STACK = 0x20000, MAP_HUGETLB = 0x40000, MAP_SYNC = 0x80000,
        MAP_FIXED_NOREPLACE = 0x100000]
    [uapi "asm-generic/mman-common.h": MAP_UNINITIALIZED = 0x4000000]

    /// Flags of `mremap`.
    MREMAP: FlagForm::Bits, wide, "MREMAP_";
    [general: MREMAP_MAYMOVE = 1, MREMAP_FIXED = 2, MREMAP_DONTUNMAP = 4]

    /// Flags of `msync`.
    MSYNC: FlagForm::Bits, "MS_";
    [general: MS_ASYNC = 1, MS_INVALIDATE = 2, MS_SYNC = 4]

    /// Flags of `mlock2`.
    MLOCK2: FlagForm::Bits, "MLOCK_";
    [general: MLOCK_ONFAULT = 1]

    /// Flags of `mlockall`.
    MLOCKALL: FlagForm::Bits, "MCL_";
    [general: MCL_CURRENT = 1, MCL_FUTURE = 2, MCL_ONFAULT = 4]

    /// Advice of `madvise`.
    MADVISE: FlagForm::Enum, "MADV_";
    [general: MADV_NORMAL = 0, MADV_RANDOM = 1, MADV_SEQUENTIAL = 2, MADV_WILLNEED = 3, MADV_DONTNEED = 4,
        MADV_FREE = 8, MADV_REMOVE = 9, MADV_DONTFORK = 10, MADV_DOFORK = 11, MADV_MERGEABLE = 12,
        MADV_UNMERGEABLE = 13, MADV_HUGEPAGE = 14, MADV_NOHUGEPAGE = 15, MADV_DONTDUMP = 16, MADV_DODUMP = 17,
        MADV_WIPEONFORK = 18, MADV_KEEPONFORK = 19, MADV_COLD = 20, MADV_PAGEOUT = 21, MADV_POPULATE_READ = 22,
        MADV_POPULATE_WRITE = 23, MADV_DONTNEED_LOCKED = 24, MADV_COLLAPSE = 25, MADV_HWPOISON = 100,
        MADV_SOFT_OFFLINE = 101]
    [uapi "asm-generic/mman-common.h": MADV_GUARD_INSTALL = 102, MADV_GUARD_REMOVE = 103]

    /// Initial rights of `pkey_alloc`.
    PKEY: FlagForm::Bits, "PKEY_";
    [general: PKEY_DISABLE_ACCESS = 1, PKEY_DISABLE_WRITE = 2]

    /// Memory policy and its mode flags.
    MPOL: FlagForm::Mixed { mask: 0xff }, "MPOL_";
    [mempolicy: MPOL_DEFAULT = 0, MPOL_PREFERRED = 1, MPOL_BIND = 2, MPOL_INTERLEAVE = 3, MPOL_LOCAL = 4,
        MPOL_PREFERRED_MANY = 5]
    [uapi "linux/mempolicy.h": MPOL_WEIGHTED_INTERLEAVE = 6]
    [mempolicy: MPOL_F_NUMA_BALANCING = 0x2000, MPOL_F_RELATIVE_NODES = 0x4000, MPOL_F_STATIC_NODES = 0x8000]

    /// Flags of `get_mempolicy`.
    MPOL_GET: FlagForm::Bits, "MPOL_F_";
    [mempolicy: MPOL_F_NODE = 1, MPOL_F_ADDR = 2, MPOL_F_MEMS_ALLOWED = 4]

    /// Flags of `mbind` and `move_pages`.
    MPOL_MF: FlagForm::Bits, "MPOL_MF_";
    [mempolicy: MPOL_MF_STRICT = 1, MPOL_MF_MOVE = 2, MPOL_MF_MOVE_ALL = 4]

    /// Commands of `membarrier`.
    MEMBARRIER: FlagForm::Enum, "MEMBARRIER_CMD_";
    [uapi "linux/membarrier.h": MEMBARRIER_CMD_QUERY = 0, MEMBARRIER_CMD_GLOBAL = 1,
        MEMBARRIER_CMD_GLOBAL_EXPEDITED = 2, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED = 4,
        MEMBARRIER_CMD_PRIVATE_EXPEDITED = 8, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED = 0x10,
        MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE = 0x20, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE = 0x40,
        MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ = 0x80, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ = 0x100,
        MEMBARRIER_CMD_GET_REGISTRATIONS = 0x200]

    /// Flags of `userfaultfd`.
    UFFD: FlagForm::Bits, "";
    [uapi "linux/userfaultfd.h": UFFD_USER_MODE_ONLY = 1]
    [general: O_NONBLOCK = 0x800, O_CLOEXEC = 0x80000]

    /// Flags of `map_shadow_stack`.
    SHADOW_STACK: FlagForm::Bits, "SHADOW_STACK_";
    [uapi "asm-generic/mman.h": SHADOW_STACK_SET_TOKEN = 1, SHADOW_STACK_SET_MARKER = 2]
}
