//! Operations of io_uring that were submitted: the line of the task that submits, with SQPOLL of the kernel thread that polls the ring.

use systape_abi::iouring_op_name;
use systape_format::model::UringOp;

use super::catalogue;

catalogue! {
    /// One row for each operation that was submitted to io_uring: I/O that is no call.
    pub IO_URING = "io_uring" of UringOp {
        ts_ns: Time key "when" = |o| o.since(o.e.ts);
        op: Word "the operation: `READ`" = |o| iouring_op_name(o.e.op);
        _: Task "process that submitted it" = |o| o.task(o.e.task);
    }
    family IoUring, blocks [Uring], stacks None;
    read |segment, dict| segment.urings(dict);
    when |e| (e.ts, None);
    whose |o| [o.task(o.e.task), None];
    kind |_e| 0;
    0 => "io_uring:io_uring_submit_req" ["io_uring:io_uring_submit_sqe"]: opcode = op;
}
