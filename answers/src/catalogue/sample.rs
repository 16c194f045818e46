//! CPU samples: the line of the task that ran.

use systape_format::model::{Sample, StackOf};

use super::catalogue;

catalogue! {
    /// One row for each CPU sample.
    pub SAMPLES = "samples" of Sample {
        ts_ns: Time key "when" = |o| o.since(o.e.ts);
        cpu: Int key "where" = |o| o.e.cpu;
        _: Task "process that ran; 0: idle" = |o| o.task(o.e.task);
        mode: Word "`kernel`, `user`" = |o| if o.e.kernel { "kernel" } else { "user" };
        stack: Stack "its stack in table stacks; null: none was stored";
    }
    family Sample, blocks [Samples Stacks], stacks Some(StackOf::Sample);
    read |segment, dict| segment.samples(dict);
    when |e| (e.ts, Some(e.cpu));
    whose |o| [o.task(o.e.task), None];
    kind |_e| 0;
    0 => "sample:cpu-clock" ["perf:cpu-clock"]: mode;
}
