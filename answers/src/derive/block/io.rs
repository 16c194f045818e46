//! One block I/O with its tasks, and whether it matches the filters.

use systape_format::model::{BlockCause, BlockIo, BlockLayer, Dict, Session, Task};

use super::files::{File, Files, IoTarget};
use systape_events::filter::Scope;
use systape_events::values::words::escaped;

/// A block I/O with its tasks.
#[derive(Clone, Copy, Debug)]
pub struct Io<'a> {
    /// The event.
    pub io: &'a BlockIo,
    /// The task that caused it.
    pub owner: Option<&'a Task>,
    /// The task that ran when it entered the block layer.
    pub origin: Option<&'a Task>,
    /// The file that it reads or writes; None: none, or not known.
    pub file: Option<&'a File>,
}

impl<'a> Io<'a> {
    /// `io` of the segment of `dict`.
    pub fn new(io: &'a BlockIo, dict: &'a Dict) -> Self {
        let task = |index: Option<u32>| index.and_then(|index| dict.tasks.get(index as usize));
        Self { io, owner: task(io.owner), origin: task(io.origin), file: None }
    }

    /// Adds its file, one of the segment's, and its owner as that was called when it dirtied the file.
    pub fn with(self, files: &'a Files) -> Self {
        Self { file: files.of(self.io), owner: files.dirtier(self.io).or(self.owner), ..self }
    }

    /// What it reads or writes.
    pub fn held(&self) -> IoTarget {
        IoTarget::new(self.io, self.file)
    }

    /// ns the device took; None when not known. A bio-based device has no queue: its time begins when the bio entered it.
    pub fn latency(&self) -> Option<u64> {
        let from = match (self.io.issued, self.io.layer) {
            (0, BlockLayer::Bio) => self.io.queued,
            (issued, _) => issued,
        };
        if from == 0 { None } else { self.io.complete.checked_sub(from) }
    }

    /// ns from its way into the block layer to its end; None when not known.
    pub fn whole(&self) -> Option<u64> {
        Some(self.io.queued).filter(|queued| *queued != 0).and_then(|queued| self.io.complete.checked_sub(queued))
    }

    /// ns it waited before it went to the device; None when not known or without a queue.
    pub fn queue(&self) -> Option<u64> {
        let known = self.io.queued != 0 && self.io.issued != 0;
        if known { self.io.issued.checked_sub(self.io.queued) } else { None }
    }

    /// Whether it matches the filters: those on tasks apply to its owner, `--time` to its completion, `--duration` to
    /// its latency.
    pub fn passes(&self, scope: &Scope<'_>) -> bool {
        let f = scope.filters();
        scope.at(self.io.complete)
            && (!f.failure || self.io.errno != 0)
            && f.longer_than.is_none_or(|ns| self.latency().is_some_and(|latency| latency > ns))
            && scope.blamed(self.owner, self.io.cgroup_id)
    }

    /// `direct`, `dirtier`, `cgroup:/path`, `kthread`, `flush`, `unknown`.
    pub fn cause(&self, session: &Session) -> String {
        match self.io.cause {
            BlockCause::CgroupOwner => {
                let id = self.io.cgroup_id;
                format!("cgroup:{}", session.cgroup_path(id).map_or_else(|| id.to_string(), escaped))
            }
            cause => cause_name(cause).to_owned(),
        }
    }
}

/// The name of `cause` in JSON.
pub fn cause_name(cause: BlockCause) -> &'static str {
    match cause {
        BlockCause::Unknown => "unknown",
        BlockCause::Direct => "direct",
        BlockCause::Dirtier => "dirtier",
        BlockCause::CgroupOwner => "cgroup",
        BlockCause::KernelThread => "kthread",
        BlockCause::Flush => "flush",
    }
}

/// The name of `layer` in JSON.
pub fn layer_name(layer: BlockLayer) -> &'static str {
    match layer {
        BlockLayer::Request => "request",
        BlockLayer::Bio => "bio",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_not_known_stay_so() {
        let dict = Dict::default();
        let times = |queued, issued, layer| {
            let io = BlockIo { complete: 100, queued, issued, layer, owner: Some(3), ..BlockIo::default() };
            let io = Io::new(&io, &dict);
            assert!(io.owner.is_none(), "an index outside the table is nobody");
            (io.queue(), io.latency())
        };
        assert_eq!(times(10, 40, BlockLayer::Request), (Some(30), Some(60)));
        assert_eq!(times(0, 40, BlockLayer::Request), (None, Some(60)));
        assert_eq!(times(10, 0, BlockLayer::Request), (None, None));
        assert_eq!(times(10, 0, BlockLayer::Bio), (None, Some(90)));
        assert_eq!(times(0, 400, BlockLayer::Request), (None, None), "a time after the end is none");
    }
}
