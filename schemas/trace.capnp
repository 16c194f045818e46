# The messages inside a tape. One block of a tape = one zstd frame = one of the root structs below. The block's kind
# decides which one (see docs/reference/tape-format.md for the block header).
#
# Rules
# - Add fields with the next number, never renumber, never reuse. An absent field must read as "not recorded".
# - A change to the meaning of a row needs a bit in the block header's features_incompat (schemas/CHANGES.md).
# - Kernel values (nr, signo, errno, flags, modes) are raw integers. Only our own kinds are enums: append-only, with
#   `unknown @0`, or @0 = the meaning of an older tape, which lacks the field.
# - Bytes that the kernel does not promise to be UTF-8 are Data.
# - Every text or bytes field carries its class in $class(...); redaction works by class, and a test fails on a field
#   without one. Classes: path, string, comm, address, host, user, command, none. A class on a list of structs overrides
#   those of the structs' fields.
# - Times are nanoseconds of CLOCK_MONOTONIC of the recorded machine unless the name says otherwise.
# - "must" is checked by the reader; a block that breaks a must is refused as a whole and counted as a hole.

@0xd5b8a7f3c1e90264;

annotation class @0xb7d1c4a09e35f821 (field) :Text;

using Ns = UInt64;          # CLOCK_MONOTONIC
using TaskIdx = UInt32;     # index into the segment's Dict.tasks
using Errno = UInt16;       # 0 = ok; 1..4095 an error; 512..516 a restart the caller never sees

# ---------------------------------------------------------------- columns

struct Column {
  # n unsigned values, one per row, in the smallest width that holds most of them; exceptionRows and exceptionValues
  # patch the rows that do not fit. The group gives n, not the column; a list of any other length is refused.
  union {
    absent @0 :Void;            # not recorded: prints as unknown, never as 0
    const @1 :UInt64;           # every row has this value
    u8 @2 :Data $class("none"); # one byte a row
    u16 @3 :List(UInt16);
    u32 @4 :List(UInt32);
    u64 @5 :List(UInt64);
    planes @10 :Data $class("none"); # byte-stream split, 2 to 8 bytes a row: the lowest byte of every row, then the
                                     # next of every row, ... Since 1.4
  }
  transform @6 :Transform;
  exceptionRows @7 :List(UInt32);     # strictly ascending, must be < n
  exceptionValues @8 :List(UInt64);   # as long as exceptionRows; replaces the narrow value before the transform
  values @9 :List(UInt64);            # the dictionary of transform listed
}

enum Transform {
  unknown @0;        # must not occur: the block is refused
  none @1;
  zigzag @2;         # value = (v >> 1) ^ -(v & 1), a signed 64-bit number
  listed @3;         # dictionary: value = values[v]; v must be < length of values. Since 1.4
  delta @4;          # value = that of the row before (0 before the first) + ((v >> 1) ^ -(v & 1)), modulo 2^64.
                     # Since 1.4
}

# ---------------------------------------------------------------- session (first block of a tape)

struct Session {
  clock @0 :ClockSample;
  bootId @1 :Text $class("host");
  hostname @2 :Data $class("host");
  machineIdHash @3 :UInt64;           # xxh3 of /etc/machine-id, 0 = not known
  utcOffsetSeconds @4 :Int32;
  kernelRelease @5 :Text $class("none");
  kernelVersion @6 :Text $class("none");
  machine @7 :Text $class("none");     # uname -m
  cpus @8 :UInt32;                     # possible CPUs
  pageSize @9 :UInt32;
  toolVersion @10 :Text $class("none");
  arguments @11 :List(Argument);       # record's own command line
  target @12 :Text $class("command");  # in words: "system-wide", "command dd ...", "pid 17"
  selection @13 :List(Argument) $class("none");  # the -e expressions, empty = everything; texts in quotes go with any class
  stringLimit @14 :UInt32;             # bytes kept of a path or string
  windowOpen @15 :Ns;                  # events before this were not recorded; ts_ns in reports counts from here
  syscalls @16 :List(SyscallFormat);   # from the kernel's tracefs formats; empty when tracefs was absent
  users @17 :List(User);
  devices @18 :List(Device);
  cgroups @19 :List(Cgroup);
  ringBytes @20 :UInt64;               # all rings together
  notes @21 :List(Argument) $class("none");  # what this recording could not do, and why (capability, kernel feature)
  deviceLinks @22 :List(DeviceLink);   # how block devices are layered; empty = not recorded
  families @23 :List(UInt16);          # numbers of the recorded families (docs/reference/tape-format.md#columns); empty = an older
                                       # tape: syscalls and process life
  stacks @24 :StackSettings;           # which stacks were asked for; null = none
  callFilters @25 :List(Argument) $class("none");  # options that stored some calls and counted the rest, e.g.
                                                   # --duration 10ms
  redacted @26 :List(Text) $class("none");  # classes of fields that were taken out; empty = none. A field that had
                                       # a value then has "<redacted>"
  cpuList @27 :List(UInt32);           # only events on these CPUs were recorded; empty = all CPUs. Since 1.5
  withSelf @28 :Bool;                  # the recorder's own threads are recorded like others (all but their calls).
                                       # Since 1.5
  extent @29 :Extent;                  # Since 1.5
  leftOut @30 :List(LeftOut);          # families that were asked for and could not be recorded; not in `families`.
                                       # Since 1.5
  preemptible @31 :Bool;               # tracing programs can be preempted; the kernel then skips a program in which
                                       # another task was preempted on that CPU (gap cause `skipped`). false = no, or
                                       # unknown. Since 1.5
  registersUnknown @32 :Bool;          # registers of tasks in the kernel could not be read, so these are missing: calls
                                       # that began before the recording, calls of signals' senders, user stacks. Since
                                       # 1.5
  labels @33 :List(Argument);          # record --label, `KEY=VALUE` each. Since 1.5
  envKeys @34 :List(Argument) $class("none"); # names of the environment variables that were kept of each process
                                       # (record --env). Since 1.5
  containers @35 :List(Container);     # those of `cgroups`. Since 1.5
  kept @36 :Kept;                      # the tape was written from what the recorder kept in memory (record --last).
                                       # null = no. Since 1.5
  cutFrom @37 :Ns;                     # a tape cut out of a longer one: reports are about [cutFrom, cutTo). Other rows
                                       # are there for what they tell of it: states, names, ends. Since 1.5
  cutTo @38 :Ns;                       # 0 = no cut
  recording @39 :Data $class("none");  # the same in all tapes of one recording, 16 bytes; empty = the tape's id. Since 1.5
  needs @41 :Bool;                     # with families sched and block, captured value 7 of a call says what it needed
                                       # besides the CPU; false = it is not said. Since 1.5
  cutTasks @40 :Bool;                  # the cut has the events of some tasks: those with Task.recorded. Rows of others are there
                                       # for what they tell of these. Since 1.5
  imported @42 :Text $class("none");   # what wrote the text that the tape was made of: "strace"; empty = recorded. What such a text does
                                       # not say is not known: an empty text or 0 here, tasks without user, cgroup and program,
                                       # calls without CPU. Since 1.5
}

struct Kept {
  # How much of the past the recorder kept in memory. windowOpen is the first moment it still had.
  lastNs @0 :UInt64;                   # record --last, or 0 = as much as fits (--rotate: nothing)
  ringBytes @1 :UInt64;                # record --ring
  full @2 :Bool;                       # the size ended it, not the time
  recordingOpen @3 :Ns;                # when the recorder itself began
}

struct LeftOut {
  family @0 :UInt16;                   # number of the family
  program @1 :Text $class("none");     # BPF program that the kernel refused; empty = another obstacle
  reason @2 :Text $class("none");      # the kernel's message, or the obstacle; may be empty
}

enum Extent {
  # Whose events are recorded.
  notSaid @0;        # before 1.5: see the text of `target`
  everyone @1;       # all tasks except the idle tasks and, without withSelf, the recorder's
  some @2;           # tasks with Task.recorded
}

struct StackSettings {
  mode @0 :StackMode;
  copyLimit @1 :UInt32;                # most bytes copied of a stack; 0 unless mode is dwarf
  on @2 :List(StackOf);                # kinds of events with stacks
  kernel @3 :List(StackOf);            # those whose kernel part is recorded too
  frequency @4 :UInt32;                # CPU samples a second on each CPU; 0 = none
  minDur @5 :UInt64;                   # only of calls at least this long, ns; 0 = all
}

enum StackMode {
  none @0;           # user stacks were not taken
  framePointers @1;
  dwarf @2;          # unwound by DWARF information, from a copy of the stack
}

struct Argument { value @0 :Data $class("command"); }

struct ClockSample {
  monotonic @0 :Ns;
  boottime @1 :UInt64;
  realtime @2 :UInt64;       # ns since 1970
  width @3 :UInt64;          # ns between the first and the last of the three reads: the sample's uncertainty
}

struct SyscallFormat {
  abi @0 :UInt8;
  nr @1 :UInt32;
  name @2 :Text $class("none");
  argNames @3 :List(Text) $class("none");
  argTypes @4 :List(Text) $class("none");
}

struct User { uid @0 :UInt32; name @1 :Data $class("user"); }
struct Device { major @0 :UInt32; minor @1 :UInt32; name @2 :Data $class("none"); }
struct Container {
  # What the files of a container runtime say of one that a cgroup is named after (since 1.5). Empty = they do not say.
  id @0 :Data $class("path");        # as in the cgroup's path: 64 hexadecimal digits
  name @1 :Data $class("path");
  image @2 :Data $class("path");
  pod @3 :Data $class("path");       # name of the pod of Kubernetes
  namespace @4 :Data $class("path"); # its namespace
}

struct Cgroup {
  id @0 :UInt64;                     # in a v2 hierarchy the kernel's; the highest 8 bits: number of a v1 hierarchy, then the
                                     # rest is the id in that (since 1.5)
  path @1 :Data $class("path");      # from the top of the hierarchy, "/" = the top
}

struct DeviceNumber { major @0 :UInt32; minor @1 :UInt32; }

struct DeviceLink {
  # A block device and what it is made of.
  dev @0 :DeviceNumber;
  disk @1 :DeviceNumber;             # the disk of a partition; null = no partition
  firstSector @2 :UInt64;            # where a partition begins on its disk, in units of 512 bytes
  lower @3 :List(DeviceNumber);      # devices below it (dm, md: members; loop: the backing file's device)
}

# ---------------------------------------------------------------- dict (first block of a segment)

struct Dict {
  tasks @0 :List(Task);      # must not be longer than the segment has rows, plus 65536
  calls @1 :List(Call);      # the distinct syscalls of the segment
  windowStart @2 :Ns;        # the segment holds calls that ended in [windowStart, windowEnd); late records excepted
  windowEnd @3 :Ns;
}

struct Task {
  tid @0 :UInt32;
  pid @1 :UInt32;
  startNs @2 :UInt64;        # thread's start, CLOCK_MONOTONIC; 0 = not known
  leaderStartNs @3 :UInt64;  # process's start; 0 = not known
  comm @4 :Data $class("comm");
  exe @5 :Data $class("path");       # empty = not known
  uid @6 :UInt32;            # 0xffffffff = not known
  cgroupId @7 :UInt64;       # cgroup v2 id; 0 = not known
  utid @8 :UInt32;           # unique in the tape, from 1
  upid @9 :UInt32;
  nsTid @10 :UInt32;         # tid in the task's own pid namespace; 0 = not known
  nsPid @11 :UInt32;
  ppid @12 :UInt32;          # 0 = none or not known
  recorded @13 :UInt32;      # bit 0: the other bits are valid; bit n: from the event with this entry on, all events of
                             # Family n that happen to this task are recorded. 0 = unknown. Since 1.5
  env @14 :Data $class("command");   # which of Session.envKeys its program was started with: `KEY=VALUE`, each with a
                             # NUL behind it. A variable that is missing was not set, and a lone `KEY` is not known. One
                             # NUL alone: none was set. Empty: not known, or not asked for. Since 1.5
}

struct Call { abi @0 :UInt8; nr @1 :UInt32; }

# ---------------------------------------------------------------- syscalls, column groups
#
# Row order: the first `carryRows` rows began before the segment's window and are sorted by (start, task); the rest are
# sorted by end. Every group of a segment has the same number of rows.

struct SyscallsCore {
  # What a summary needs.
  rows @0 :UInt32;
  carryRows @1 :UInt32;      # must be <= rows
  call @2 :Column;           # index into Dict.calls, must be < its length
  task @3 :Column;           # TaskIdx, must be < length of Dict.tasks
  dur @4 :Column;            # ns; a lower bound unless state = complete
  errno @5 :Column;          # Errno
  state @6 :Column;          # low 4 bits: CallState; bit 4 (before 1.5): not selected by record -e, kept for fd
                             # tracking; other bits must be 0
}

enum CallState {
  unknown @0;
  complete @1;
  inFlight @2;      # still open when the recording ended: dur is a lower bound, no return value
  killed @3;        # the task was killed inside the call: no return value
  noReturn @4;      # exit, exit_group, and calls open at the task's exit
  beganBefore @5;   # ended in the recording, began before it: dur is a lower bound. In an imported tape also: of a call that
                    # began in it the duration is not known
  cloneChild @6;    # the child's return from fork/clone: an exit without an enter
  denied @7;        # seccomp or ptrace refused it before it was entered: no duration
  lostEnter @8;     # its enter was not recorded (state map full): no duration, arguments as at exit
}

struct SyscallsTime {
  # Rows r >= carryRows are sorted by end. Begin with e = windowStart:
  #   endFrom = previousEnd:         e += endDelta[r]            (unsigned; ends ascend, so it is never negative)
  #   endFrom = previousEndToStart:  e += endDelta[r] + dur[r]   (signed: start minus the previous end; the sum must not
  #                                  be negative)
  # then e is the end of row r; its start is end - dur, 0 when dur > end. A row that ended before the window (a late
  # record) also began before it and is a carry row.
  # start of row r (r < carryRows) = carryStart0 + sum of carryStartDelta up to r; its end is start + dur.
  # No sum may exceed 2^64 - 1.
  endDelta @0 :Column;           # rows - carryRows values
  carryStart0 @1 :Ns;
  carryStartDelta @2 :Column;    # carryRows values, the first is 0
  cpu @3 :Column;                # rows values: the CPU that ran the call's exit
  endFrom @4 :EndFrom;
}

enum EndFrom {
  unknown @0;              # must not occur
  previousEnd @1;
  previousEndToStart @2;   # smaller when one task makes most calls: the gaps between them vary less than the calls
}

struct SyscallsArgs {
  # Columns are in the order of (task, call, row): rebuild it from core with a stable sort.
  ret @0 :Column;          # zigzag; 0 when errno != 0 or there is no return value
  args @1 :List(Column);   # up to 6, all `rows` long; an argument the call does not have is 0
  unknown @2 :Column;      # bit n: argument n is not known; other bits must be 0. Its value is 2^64 - 1 where it is a pointer that
                           # is not null, or the kernel does not read it; else 0. Absent = all are known. With incompat bit 9
                           # of the block. Since 1.5
}

struct SyscallsFds {
  # Paths of fd arguments, resolved at the call's enter time. Same row order as args.
  # 0 = the call has no fd argument or it is negative; 1 = unknown; i + 2 = names[i]
  # poll, ppoll: of the first two fds of the array, if it is among the captured values
  fd @0 :Column;           # of the first fd argument
  names @1 :List(FdName);
  fd2 @2 :Column;          # of the second one (sendfile, renameat, ...); of open, openat, openat2, creat, open_by_handle_at
                           # the file that was opened, of unlink, unlinkat what was removed, as the kernel names it; absent = no row has one
}

struct FdName { name @0 :Data $class("path"); }

struct SyscallsBytes {
  # Captured user memory, sorted by (row, arg).
  n @0 :UInt32;
  row @1 :Column;          # delta from the previous value's row
  arg @2 :Column;          # 0..5; bit 3 set: its value when the call had returned, which the kernel wrote over the first.
                           # Of an array of pollfd: the elements whose revents are not 0. 6: what was at the futex that the call waits
                           # for when the wait began, 16 bytes or those up to the end of the page.
                           # 7: what the call needed besides the CPU, one byte: bit 0, its thread had something read from a block
                           # device meanwhile; bit 1, of a call that reads from a descriptor, it slept. Neither: no value
  status @3 :Column;       # ByteStatus
  len @4 :Column;          # bytes stored
  full @5 :Column;         # full size of the value; 0 = not known
  bytes @6 :Data $class("string");    # all values one after the other, must be sum(len) long
}

enum ByteStatus {
  unknown @0;
  whole @1;
  truncated @2;      # stored len of full
  notResident @3;    # the page was absent at enter and at exit
  late @4;           # whole, but read at exit
  lateTruncated @5;
  noBuffer @6;       # the recorder's scratch pool was exhausted
  redacted @7;       # taken out; the bytes are "<redacted>"
}

# ---------------------------------------------------------------- process life

struct Processes {
  events @0 :List(ProcessEvent);     # sorted by ts
}

struct ProcessEvent {
  ts @0 :Ns;
  kind @1 :ProcessKind;
  task @2 :TaskIdx;            # the task it is about (fork: the child)
  parent @3 :TaskIdx;          # fork: the task that forked; else = task
  flags @4 :UInt32;            # fork: 1 thread, 2 shares files, 4 shares fs
  exitCode @5 :UInt32;         # exit: the kernel's exit_code (status in bits 8..15, signal in 0..6, 0x80 core)
  groupDead @6 :Bool;          # exit: the last thread of its process
  path @7 :Data $class("path");        # exec: the path passed to exec
  argv @8 :Data $class("command");     # exec: NUL-separated
  argvFull @9 :UInt64;         # full size of argv
  argvStatus @10 :ByteStatus;
  oldTid @11 :UInt32;          # exec by a thread other than the leader: its tid before
  comm @12 :Data $class("comm");       # rename: the new name
}

enum ProcessKind {
  unknown @0;
  fork @1;
  exec @2;
  exit @3;
  rename @4;
  cred @5;       # uid changed
  cgroup @6;     # moved to another cgroup; flags: 1 all threads of the process
  target @7;     # it became a target or ceased to be one: task.recorded is valid from here on; flags: 1 it
                 # was on a CPU. Since 1.5
}

# ---------------------------------------------------------------- scheduler, block I/O, io_uring: columns
#
# Rows are sorted by their time. Time of row 0 = first + delta[0], of row r = that of row r - 1 + delta[r]; delta[0] is
# 0, no sum may exceed 2^64 - 1. Times may lie before the segment's window: late records. "TaskIdx + 1": 0 = none, not
# known or an interrupt, as the field says; must be at most the length of Dict.tasks.

struct Sched {
  # Switches: a CPU went from one task to another.
  rows @0 :UInt32;
  first @1 :Ns;
  delta @2 :Column;
  cpu @3 :Column;
  next @4 :Column;           # TaskIdx: the task that runs from then on
  prev @5 :Column;           # the task that ran until then: 0 = `next` of the previous row of the same CPU (must not be
                             # 0 in a CPU's first row), else TaskIdx + 1
  prevState @6 :Column;      # bit 0: prev was preempted; from bit 1 on the kernel's task state, must be below 2^32
  throttled @7 :Column;      # 1.5: 1 = prev is runnable, and its cgroup has used up its quota of CPU time; else 0. Absent = not
                             # known of any row, as in older tapes
  unthrottled @8 :Column;    # 1.5: ns before the switch at which the quota let next run again, which has waited for a CPU since;
                             # 0 = next was not throttled, or until the switch, or it is not known. Absent = 0
  came @9 :Column;           # 1.5: 0 = the switch that brought prev is on the tape, or it is not known; else it was not seen: bits 1 on
                             # are the ns before this one at which prev got the CPU, by the kernel's own times, with bit 0 at which
                             # it may have got it first. Absent = 0
}

struct Wakeups {
  rows @0 :UInt32;
  first @1 :Ns;
  delta @2 :Column;
  cpu @3 :Column;            # of the waker
  waker @4 :Column;          # TaskIdx + 1; 0 = an interrupt
  wakee @5 :Column;          # TaskIdx
  targetCpu @6 :Column;      # the wakee's last CPU (new task: where it is queued)
  flags @7 :Column;          # bit 0: a new task's first; bit 1 (since 1.5, with incompat bit 2 of the block): by a
                             # network softirq at the end of the waker's own send; other bits must be 0
  throttled @8 :Column;      # 1.5: 1 = the wakee must wait until its cgroup has CPU time again; else 0. Absent = not known
}

struct Blocks {
  # I/O of block devices, by completion.
  #
  # A time t before a later one T is stored as v, a signed column: v = 0 when t = 0 (not known), v = T when t = T, else
  # v = T - t modulo 2^64. So every t has one v.
  rows @0 :UInt32;
  first @1 :Ns;
  delta @2 :Column;          # of the completion
  issued @3 :Column;         # back from the completion (above)
  queued @4 :Column;         # back from issued (above); from the completion if issued is not known
  dev @5 :Column;            # the kernel's dev_t: major << 20 | minor, of the whole disk
  sector @6 :Column;         # units of 512 bytes
  bytes @7 :Column;
  flags @8 :Column;          # the kernel's cmd_flags
  errno @9 :Column;          # Errno
  requeues @10 :Column;
  merged @11 :Column;
  layer @12 :Column;         # BlockLayer
  origin @13 :Column;        # TaskIdx + 1: the task that ran when it was queued; 0 = not known or an interrupt
  cause @14 :Column;         # BlockCause
  owner @15 :Column;         # TaskIdx + 1: the task that caused it; 0 = not known
  cgroupId @16 :Column;      # 0 = not known
  inode @17 :Column;         # of the file; 0 = not known
  holds @18 :Column;         # 1.5: BlockHolds; a value unknown to the reader, or no column: unknown
  file @19 :Column;          # 1.5: number of the file in the rows of this segment's table "block:file"; 0 = none
}

enum BlockHolds {
  unknown @0;        # not known
  file @1;           # a file
  metadata @2;       # the file system's own data
  journal @3;        # its journal
  device @4;         # the device itself, which a program opened
  swap @5;           # memory of processes
  several @6;        # more than one of these, or more than one file: I/Os that were merged
}

enum BlockLayer {
  unknown @0;        # must not occur
  request @1;
  bio @2;            # of a device without a request queue
}

enum BlockCause {
  unknown @0;        # the owner is not known
  direct @1;         # the task that submitted it
  dirtier @2;        # the last task that dirtied the inode
  cgroupOwner @3;    # only the cgroup that owns the pages is known
  kernelThread @4;   # 1.5: the kernel thread that submitted it (a journal, kswapd), other than a workqueue's worker
  flush @5;          # 1.5: a flush of the device's cache; owner and origin are those of the first waiting request
}

struct UringOps {
  rows @0 :UInt32;
  first @1 :Ns;
  delta @2 :Column;
  task @3 :Column;           # TaskIdx
  op @4 :Column;             # IORING_OP_, must be below 256
}

struct TableDefs {
  # Definitions of this tape's tables (since 1.5). Of no segment: before the first segment of each chunk that has rows
  # of them. All copies of a definition are equal. At most 64 in a tape.
  defs @0 :List(TableDef);
  cgroups @1 :List(Cgroup);          # those that appeared since the recording began, each once: before the first segment
                                     # with a task in it, as a rule
  containers @2 :List(Container);    # the same of containers
}

struct TableDef {
  name @0 :Text $class("none");      # family:event, e.g. "exceptions:page_fault_user"; 1 to 64 graphic characters of
                                     # ASCII
  doc @1 :Text $class("none");       # meaning of a row; at most 256 bytes
  columns @2 :List(TableColumn);     # 1 to 128; the first is of type time, no other is "ts"
}

struct TableColumn {
  name @0 :Text $class("none");      # 1 to 64 graphic characters of ASCII, unique in the table
  doc @1 :Text $class("none");       # at most 256 bytes
  type @2 :ColumnType;
  class @3 :Text $class("none");     # of a str column; "" = not known: every level of redaction takes it out
}

enum ColumnType {
  unknown @0;        # must not occur
  time @1;           # CLOCK_MONOTONIC, ns. The first column of a table: time of the event
  duration @2;       # ns
  count @3;
  bytes @4;
  int @5;            # signed
  wide @6;           # unsigned, up to 64 bits
  hex @7;            # a bit pattern or an address
  flag @8;           # 0 or 1
  str @9;            # bytes
  task @10;          # an entry of the segment's tasks
  stack @11;         # an entry of the distinct stacks in the segment's Stacks
  unread @12;        # a bit for each number of the row that is not known: bit n, of value 2^n, if the number in column n + 1 is none;
                     # the first column, the time, is column 0. Columns above 64 are always known
}

struct Tables {
  # Rows of tables that the tape itself defines: one block a segment.
  tables @0 :List(TableRows);        # at most 64; rows * columns of all together: at most 2 Mi
}

struct TableRows {
  def @0 :UInt64;            # xxh3-64 (seed 0) of the definition, see docs/reference/tape-format.md
  rows @1 :UInt32;
  first @2 :Ns;              # the first column is the time: that of the first row,
  delta @3 :Column;          # and each row's difference from the row before
  columns @4 :List(Column);  # the others, in the definition's order. int: zigzag; str: i + 1 = strings[i], 0 = not
                             # known; task: TaskIdx + 1, 0 = none; stack: index + 1 of the distinct stacks in Stacks, 0
                             # = none
  strings @5 :List(TableString);
}

struct TableString { value @0 :Data $class("string"); }

struct Samples {
  # CPU samples: the task on a CPU at a timer's tick.
  rows @0 :UInt32;
  first @1 :Ns;
  delta @2 :Column;
  cpu @3 :Column;
  task @4 :Column;           # TaskIdx
  flags @5 :Column;          # bit 0: it ran in the kernel; other bits must be 0
}

# ---------------------------------------------------------------- stacks and symbols
#
# Frames are places in mappings, not names. Stacks are a tree of nodes: a node is a frame and the node of its caller.
# Mappings, frames, nodes and stacks are numbered in order of first use. In a "next or value + 1" column 0 = the lowest
# number that no value before has reached, else the value + 1.

struct Mapping {
  kind @0 :UInt8;                      # MappingKind
  buildId @1 :Data $class("none");     # empty = none, or not known
  path @2 :Data $class("path");        # path of a file, or name of a module or BPF program; empty = none
  upid @3 :UInt32;                     # jit and unknown: the process of the address space; else 0
}

enum MappingKind {
  unknown @0;        # no mapping is known; offsets are addresses
  elf @1;            # a file; offsets in the file
  kernel @2;         # offsets from its symbol _text; 0 = not known
  module @3;         # offsets from its load address
  vdso @4;           # offsets from its first byte
  jit @5;            # executable memory without a file; offsets are addresses
  bpf @6;            # offsets from the program's first byte
}

struct Stacks {
  # Stacks of this segment's events.
  mappings @0 :List(Mapping);
  frames @1 :UInt32;
  mapping @2 :Column;        # of a frame: index, must be < length of mappings
  offset @3 :Column;         # signed: offset minus that of the previous frame of the same mapping (first: minus 0),
                             # modulo 2^64
  flags @4 :Column;          # 1 exact (the offset is that of the running instruction, else a return address), 2 signal
                             # trampoline, 4 guessed from frame pointers or from instructions of code made at
                             # run time; other bits must be 0
  nodes @5 :UInt32;
  parent @6 :Column;         # of a node: own index minus the caller's, must be at most the own index; 0 = outermost
  frame @7 :Column;          # next or index + 1, must be < frames
  stacks @8 :UInt32;         # distinct ones
  user @9 :Column;           # signed: node of the innermost user frame + 1 (0 = none) minus that of the stack before
  kernel @10 :Column;        # the innermost kernel frame's node + 1; 0 = none; both must be at most `nodes`
  status @11 :Column;        # StackStatus
  rows @12 :UInt32;          # events with a stack
  of @13 :Column;            # StackOf, must ascend
  row @14 :Column;           # the event's position in its block, minus that of the previous row with the same `of`
                             # (first: minus 0, else must be > 0); the position must be < the rows of that block
  stack @15 :Column;         # next or index + 1, must be < stacks
}

enum StackOf {
  unknown @0;        # must not occur
  syscall @1;        # of the caller; position: row of the calls
  switch @2;         # of the task that left the CPU
  wakeup @3;         # of the waker
  block @4;          # of the task that queued it
  signal @5;         # of the sender
  sample @6;
  asleep @7;         # of a row of Sleepers: a thread asleep since before the recording. Since 1.5
  row @8;            # of rows of tables, which have a column for it: only in StackSettings, never in Stacks. Since 1.5
}

enum StackStatus {
  # How far the user part reaches, and why it ends there.
  absent @0;         # no user part: a kernel thread, an interrupt, or only the kernel's part was asked for
  complete @1;
  framePointers @2;  # as far as they reach; callers compiled without them may be missing
  tooDeep @3;        # more frames than are kept
  cut @4;            # larger than the copy of it
  notResident @5;
  noUnwindInfo @6;
  badMemory @7;      # unwind information or stack makes no sense there
  noFile @8;         # the mapping's file could not be opened, or is no file
  noMapping @9;
  jit @10;
  otherStack @11;    # the rest is on another stack (a signal handler's)
  late @12;          # the recorder was too slow to unwind it
  lost @13;          # no buffer, or the stack ring was full
  failed @14;        # the kernel could not give it
  unavailable @15;   # of a sleeper: this kernel cannot copy another task's stack. Since 1.5
  locked @16;        # of a sleeper: its address space was locked, and a read might never have returned. Since 1.5
}

struct Sleepers {
  # Threads that were asleep when the recorder read their state, once, right after the start. Their stacks have StackOf
  # asleep. The switches until then show whether a thread slept since before the recording. Since 1.5
  rows @0 :UInt32;
  first @1 :Ns;
  delta @2 :Column;
  task @3 :Column;           # TaskIdx
  state @4 :Column;          # letter of ps(1), must be below 256; 0 = not known
}

struct Symbols {
  # Names of places. Blocks of no segment, anywhere in the tape, each complete in itself. If two name a place, the later
  # one wins.
  mappings @0 :List(Mapping);
  rows @1 :UInt32;           # places; sorted by (mapping, offset), must not repeat
  mapping @2 :Column;        # index, must be < length of mappings
  offset @3 :Column;         # minus that of the previous row of the same mapping (first: minus 0)
  functions @4 :Column;      # functions at the place, the innermost inlined one first, must be <= 256; 0 = looked up,
                             # no name
  functionRows @5 :UInt32;   # must be the sum of functions
  name @6 :Column;           # next or index into names + 1
  file @7 :Column;           # the same into files
  line @8 :Column;           # 0 = not known
  names @9 :UInt32;
  nameLen @10 :Column;       # bytes of each, at most 16384
  nameBytes @11 :Data $class("none");  # all names one after the other, must be sum(nameLen) long
  files @12 :UInt32;
  fileLen @13 :Column;       # at most 4096; a file of 0 bytes = not known
  fileBytes @14 :Data $class("path");
  failures @15 :List(SymbolFailure);
}

struct SymbolFailure {
  mapping @0 :UInt32;                  # the mapping without names; must be < length of mappings
  text @1 :Text $class("path");        # why
}

# ---------------------------------------------------------------- signals and sockets: lists

struct Signals {
  signals @0 :List(Signal);  # sorted by ts
}

struct Signal {
  ts @0 :Ns;
  kind @1 :SignalKind;
  sig @2 :UInt32;            # 0 for an OOM victim
  code @3 :Int32;            # si_code
  errno @4 :Int32;           # si_errno
  info @5 :SignalInfo;
  result @6 :UInt8;          # generate: the kernel's enum trace_signal
  flags @7 :UInt32;          # 1 in an interrupt, 2 sender is exiting, 4 sender is a kernel thread, 8 target blocks it,
                             # 16 target ignores it, 32 target handles it, 64 asked for by PR_SET_PDEATHSIG, 128 of the
                             # group, 256 deliver of an imported log: the handler is not known
  target @8 :TaskIdx;
  sender @9 :UInt32;         # TaskIdx + 1: the task that ran; 0 = none (deliver, but for that of an imported log)
  call @10 :UInt32;          # index into Dict.calls + 1: the call the sender was in; 0 = none or not known
  callArgs @11 :List(UInt64);            # its first arguments, at most 4; absent ones are 0
  callPath @12 :Data $class("path");     # the path of its fd argument; empty = none or not known
  siPid @13 :UInt32;
  siUid @14 :UInt32;
  addr @15 :UInt64;          # of a fault
  ip @16 :UInt64;            # fault: instruction pointer; deliver: the handler
  senderAncestors @17 :List(Ancestor);   # parent first
  targetAncestors @18 :List(Ancestor);
  argv @19 :Data $class("command");      # the sender's arguments, NUL-separated
  argvStatus @20 :ByteStatus;
  argvFull @21 :UInt64;      # full size of argv; 0 = not known
  oom @22 :OomMemory;        # null = not known
}

enum SignalKind {
  unknown @0;        # must not occur
  generate @1;
  deliver @2;
  oomVictim @3;
}

enum SignalInfo {
  unknown @0;
  siginfo @1;        # code, siPid, siUid, addr are valid
  noInfo @2;         # SEND_SIG_NOINFO
  priv @3;           # SEND_SIG_PRIV
}

struct Ancestor { pid @0 :UInt32; startNs @1 :Ns; comm @2 :Data $class("comm"); }

struct OomMemory {
  # Bytes.
  totalVm @0 :UInt64;
  anon @1 :UInt64;
  file @2 :UInt64;
  shmem @3 :UInt64;
}

struct Net {
  states @0 :List(NetState); # sorted by ts
}

struct NetState {
  # A socket's change of state.
  ts @0 :Ns;
  task @1 :UInt32;           # TaskIdx + 1: the task that ran; 0 = an interrupt
  socket @2 :UInt64;         # unique in the tape, from 1
  family @3 :UInt16;
  protocol @4 :UInt16;
  oldState @5 :UInt8;
  newState @6 :UInt8;
  sport @7 :UInt16;
  dport @8 :UInt16;
  saddr @9 :Data $class("address");      # must have at most 16 bytes
  daddr @10 :Data $class("address");
  sender @11 :UInt32;        # TaskIdx + 1, only with task 0: the interrupt was a network softirq at the end of this
                             # task's own send. 0 = another interrupt, or not known
}

# ---------------------------------------------------------------- checkpoint (head of a chunk)

struct Checkpoint {
  # The full state at `ts`, so that a chunk can be read without the blocks before it. May be several blocks (parts):
  # lists continue where those of the previous part ended; so does a table whose upid equals the last one's. ts, clock
  # and source are those of the first part.
  ts @0 :Ns;
  clock @1 :ClockSample;
  tasks @2 :List(Task);
  fdTables @3 :List(FdTable);
  inFlight @4 :List(InFlight);
  source @5 :Text $class("none");      # "snapshot" (read from the system) or "tracked"
  run @6 :List(RunState);              # empty = not recorded
  commands @7 :List(CommandLine);
}

struct FdTable {
  upid @0 :UInt32;
  complete @1 :Bool;           # false: fds not listed may exist
  cwd @2 :Data $class("path");         # empty = not known
  fds @3 :List(Fd);
  thread @4 :UInt32;           # 1.5: not 0: upid is 0, and it is of this thread (utid) alone, which does not share its process's
  own @5 :UInt8;               # with thread: bit 0: it does not share the fds, bit 1: nor the directory; other bits must be 0
}

# path: empty = it was open, and nobody knows what it was; nor is cloexec known
struct Fd { fd @0 :Int32; path @1 :Data $class("path"); cloexec @2 :Bool; }

struct InFlight {
  utid @0 :UInt32;
  call @1 :Call;
  start @2 :Ns;                # gives a lower bound of the duration; 0 = before the recording
  args @3 :List(UInt64);
  taskState @4 :UInt8;         # letter of ps(1): R S D T Z X I; 0 = not known
}

struct RunState {
  utid @0 :UInt32;
  state @1 :UInt8;             # letter of ps(1); R is running or waiting for a CPU
  onCpu @2 :Bool;
  cpu @3 :UInt32;              # where it runs or ran last
  lastRun @4 :Ns;              # when it last got a CPU; 0 = not known
  seen @5 :Ns;                 # when `state` was read; 0 = at the checkpoint's ts. Since 1.5
}

struct CommandLine {
  upid @0 :UInt32;
  argv @1 :Data $class("command");     # NUL-separated; empty = not known
  full @2 :UInt64;             # full size; above 65536 a lower bound, because no more is read of a process that runs
                               # already. Since 1.5
}

# ---------------------------------------------------------------- loss

struct Gaps {
  gaps @0 :List(Gap);
}

struct Gap {
  cause @0 :GapCause;
  family @1 :UInt16;         # number of the family
  cpu @2 :UInt32;            # 0xffffffff = not tied to one
  count @3 :UInt64;          # 0 = not known: every total it touches is "at least"
  first @4 :Ns;
  last @5 :Ns;
  pid @6 :UInt32;            # 0 = not known
  ledger @7 :Bool;           # ledger blocks count these calls: with them counts, errors and times are complete
}

enum GapCause {
  unknown @0;
  ringFull @1;
  stateFailed @2;      # per-task state could not be allocated: the call's exit had no enter
  scratchExhausted @3; # no slot for the call's strings
  skipped @4;          # the kernel skipped the program (recursion)
  queueFull @5;        # the recorder was behind and its memory full
  ownTraffic @6;       # calls of the recorder itself, left out on purpose
  stringFault @7;      # user memory was not resident at enter nor at exit
  diskError @8;
  badRecord @9;        # a wire record the recorder could not read
  lateRecord @10;      # arrived after its segment was closed: stored in a later one
  everyday @11;        # ring full, of frequent signals that end no process (SIGCHLD, handled timers, ...)
  unexplained @12;     # expected but missing, cause unknown
  damaged @13;         # a block of the original of this repaired tape was lost or unreadable
  detailDamaged @14;   # the same, but only times, arguments, strings or paths: the calls are still counted
  filtered @15;        # counted instead of stored, by an option of record
  overShare @16;       # a process had filled its share of the ring
  hidden @17;          # 1.5: the kernel ran no BPF program when it happened
  notRead @18;         # 1.5: no event is missing; /proc of a process was not read in time. Family state: its open
                       # files; process: its arguments
  notUnderstood @19;   # 1.5: lines of an imported log that were not understood, perhaps calls
  otherAbi @20;        # 1.5: calls of 32-bit programs on arm64, which the recorder does not record
  crowded @21;         # 1.5: threads that a look had no room for
}

struct Ledger {
  # Calls that were counted instead of stored. A row sums up one process's calls with one outcome on one CPU in one
  # window of time; several windows give several rows. Sorted by first.
  rows @0 :UInt32;
  task @1 :Column;           # TaskIdx + 1 of the process's leader as it was then; 0 = not known, because the kernel's
                             # table was full
  call @2 :Column;           # index into Dict.calls
  reason @3 :Column;         # LedgerReason
  errno @4 :Column;          # Errno; of rows without a task 65535 stands for any error
  state @5 :Column;          # CallState; must not be unknown
  cpu @6 :Column;            # CPU of the calls' exits
  count @7 :Column;          # calls, must be > 0
  sum @8 :Column;            # ns of all of them
  min @9 :Column;            # ns
  max @10 :Column;           # ns, must be >= min
  start @11 :Ns;             # `first` of the first row
  first @12 :Column;         # end of the earliest call, minus that of the row before (first row: minus start)
  last @13 :Column;          # end of the latest call minus that of the earliest
  buckets @14 :Column;       # number of buckets, must be <= 64; 0 = the durations' sizes are not known
  bucketRows @15 :UInt32;    # must be the sum of buckets
  bucket @16 :Column;        # bucketRows values: b = durations of 2^b to 2^(b+1) - 1 ns, 0 = 0 and 1 ns; ascending in a
                             # row, must be < 64
  bucketCount @17 :Column;   # bucketRows values: calls in that bucket, must be > 0 and add up to `count` in a row
}

enum LedgerReason {
  unknown @0;        # must not occur
  lost @1;           # there was no room for them
  filtered @2;       # an option of record: count them only
  overShare @3;      # no room: the process had filled its share of the ring
  checked @4;        # stored too, to check the ledger: reports do not add them
  behind @5;         # since 1.5: no room: the recorder was behind and its memory full
}

# ---------------------------------------------------------------- index and end

struct Index {
  # May be several blocks; lists continue where those of the previous block ended.
  segments @0 :List(SegmentEntry);     # by segment number, ascending
  checkpoints @1 :List(BlockRef);      # by offset; a checkpoint of several parts has an entry for each
  symbols @2 :List(BlockRef);          # by offset
  tableDefs @3 :List(BlockRef);        # by offset. Since 1.5
}

struct BlockRef {
  kind @0 :UInt16;
  offset @1 :UInt64;       # from the tape's first byte
  storedLen @2 :UInt32;
  rawLen @3 :UInt32;
  chunk @4 :UInt32;
}

struct SegmentEntry {
  segment @0 :UInt32;
  chunk @1 :UInt32;
  blocks @2 :List(BlockRef);
  rows @3 :UInt32;
  carryRows @4 :UInt32;
  carryStartMin @5 :Ns;    # 0 = no carry rows
  startMin @6 :Ns;
  endMin @7 :Ns;
  endMax @8 :Ns;
  maxDur @9 :UInt64;
  calls @10 :List(UInt32);   # abi << 24 | nr, ascending; at most 112. Empty although rows > 0 = not known
  pids @11 :List(UInt32);    # ascending, of every task and gap of the segment; at most 64
  pidBloom @12 :Data $class("none");   # 256 bytes when there are more than 64 pids, else empty (docs/reference/tape-format.md)
  failures @13 :UInt32;    # rows with an errno below 512
  tableStartMin @14 :Ns;    # of rows of tables, which startMin and endMax do not cover; 0 = none. Since 1.5
  tableEndMax @15 :Ns;
}

struct End {
  clock @0 :ClockSample;
  windowClose @1 :Ns;
  reason @2 :Text $class("none");      # "command exited", "interrupted", "--for reached", ...
  events @3 :List(KindCount);          # stored
  lost @4 :List(KindCount);
  commandExit @5 :Int32;               # wait status of the command; -1 = no command
  selfCpuNs @6 :UInt64;                # the recorder's own CPU time
  selfPeakRss @7 :UInt64;
  ownCalls @8 :UInt64;                 # syscalls of the recorder itself, not recorded
}

struct KindCount { family @0 :UInt16; count @1 :UInt64; }
