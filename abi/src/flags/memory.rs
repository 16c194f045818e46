//! Flags of memory calls.

use super::{FlagForm, flag_sets};

flag_sets! {
    /// Protection of a mapping.
    PROT: FlagForm::Bits, wide, "PROT_";
    [general: PROT_NONE, PROT_READ, PROT_WRITE, PROT_EXEC, PROT_SEM, PROT_GROWSDOWN, PROT_GROWSUP]

    /// [`PROT`] with the bits only arm64 has.
    PROT_ARM64: FlagForm::Bits, wide, "PROT_";
    [general: PROT_NONE, PROT_READ, PROT_WRITE, PROT_EXEC, PROT_SEM]
    [uapi "arch/arm64/include/uapi/asm/mman.h": PROT_BTI = 0x10, PROT_MTE = 0x20]
    [general: PROT_GROWSDOWN, PROT_GROWSUP]

    /// Flags of `mmap` on x86: the type in the low four bits, then bits.
    MMAP: FlagForm::Mixed { mask: 15 }, wide, "MAP_";
    [general: MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE]
    [uapi "asm-generic/mman-common.h": MAP_DROPPABLE = 8]
    [general: MAP_FIXED, MAP_ANONYMOUS]
    [uapi "asm-generic/mman-common.h": MAP_32BIT = 0x40, MAP_ABOVE4G = 0x80]
    [general: MAP_GROWSDOWN, MAP_DENYWRITE, MAP_EXECUTABLE, MAP_LOCKED, MAP_NORESERVE, MAP_POPULATE, MAP_NONBLOCK,
        MAP_STACK, MAP_HUGETLB, MAP_SYNC, MAP_FIXED_NOREPLACE]
    [uapi "asm-generic/mman-common.h": MAP_UNINITIALIZED = 0x4000000]

    /// [`MMAP`] without the bits only x86 has.
    MMAP_ARM64: FlagForm::Mixed { mask: 15 }, wide, "MAP_";
    [general: MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE]
    [uapi "asm-generic/mman-common.h": MAP_DROPPABLE = 8]
    [general: MAP_FIXED, MAP_ANONYMOUS, MAP_GROWSDOWN, MAP_DENYWRITE, MAP_EXECUTABLE, MAP_LOCKED, MAP_NORESERVE,
        MAP_POPULATE, MAP_NONBLOCK, MAP_STACK, MAP_HUGETLB, MAP_SYNC, MAP_FIXED_NOREPLACE]
    [uapi "asm-generic/mman-common.h": MAP_UNINITIALIZED = 0x4000000]

    /// Flags of `mremap`.
    MREMAP: FlagForm::Bits, wide, "MREMAP_";
    [general: MREMAP_MAYMOVE, MREMAP_FIXED, MREMAP_DONTUNMAP]

    /// Flags of `msync`.
    MSYNC: FlagForm::Bits, "MS_";
    [general: MS_ASYNC, MS_INVALIDATE, MS_SYNC]

    /// Flags of `mlock2`.
    MLOCK2: FlagForm::Bits, "MLOCK_";
    [general: MLOCK_ONFAULT]

    /// Flags of `mlockall`.
    MLOCKALL: FlagForm::Bits, "MCL_";
    [general: MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT]

    /// Advice of `madvise`.
    MADVISE: FlagForm::Enum, "MADV_";
    [general: MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE, MADV_REMOVE,
        MADV_DONTFORK, MADV_DOFORK, MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP,
        MADV_DODUMP, MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ,
        MADV_POPULATE_WRITE, MADV_DONTNEED_LOCKED, MADV_COLLAPSE, MADV_HWPOISON, MADV_SOFT_OFFLINE]
    [uapi "asm-generic/mman-common.h": MADV_GUARD_INSTALL = 102, MADV_GUARD_REMOVE = 103]

    /// Initial rights of `pkey_alloc`.
    PKEY: FlagForm::Bits, "PKEY_";
    [general: PKEY_DISABLE_ACCESS, PKEY_DISABLE_WRITE]

    /// Memory policy and its mode flags.
    MPOL: FlagForm::Mixed { mask: 0xff }, "MPOL_";
    [mempolicy: MPOL_DEFAULT, MPOL_PREFERRED, MPOL_BIND, MPOL_INTERLEAVE, MPOL_LOCAL, MPOL_PREFERRED_MANY]
    [uapi "linux/mempolicy.h": MPOL_WEIGHTED_INTERLEAVE = 6]
    [mempolicy: MPOL_F_NUMA_BALANCING, MPOL_F_RELATIVE_NODES, MPOL_F_STATIC_NODES]

    /// Flags of `get_mempolicy`.
    MPOL_GET: FlagForm::Bits, "MPOL_F_";
    [mempolicy: MPOL_F_NODE, MPOL_F_ADDR, MPOL_F_MEMS_ALLOWED]

    /// Flags of `mbind` and `move_pages`.
    MPOL_MF: FlagForm::Bits, "MPOL_MF_";
    [mempolicy: MPOL_MF_STRICT, MPOL_MF_MOVE, MPOL_MF_MOVE_ALL]

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
    [general: O_NONBLOCK, O_CLOEXEC]

    /// Flags of `map_shadow_stack`.
    SHADOW_STACK: FlagForm::Bits, "SHADOW_STACK_";
    [uapi "asm-generic/mman.h": SHADOW_STACK_SET_TOKEN = 1, SHADOW_STACK_SET_MARKER = 2]
}
