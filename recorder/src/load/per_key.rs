//! Programs that the recorder runs itself, once for each key of a map.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// Keys read by one system call, more than a bucket of a map has.
const AT_ONCE: u32 = 2048;

/// A program, and the map whose keys it is run for. Iterators over the elements of a map would do the same; there are
/// kernels whose policy refuses those alone.
#[derive(Debug)]
pub(crate) struct PerKey {
    program: OwnedFd,
    keys: MapHandle,
}

impl PerKey {
    /// `program` takes a key of `keys` as its first argument. Keys are of 8 bytes at most.
    ///
    /// # Errors
    /// When the descriptor of the program cannot be copied.
    pub(super) fn new(program: &impl AsFd, keys: MapHandle) -> Result<Self> {
        let program = program.as_fd().try_clone_to_owned().context("cannot keep a program")?;
        Ok(Self { program, keys })
    }

    /// Runs the program for each key that is there now, and `found` after each run that returned other than 0.
    ///
    /// # Errors
    /// When the kernel refuses a run, or `found` fails; the keys after that are left.
    pub(super) fn run(&self, mut found: impl FnMut() -> Result<()>) -> Result<()> {
        // bucket by bucket: keys that come and go do not make it begin again
        let at_once = self.keys.max_entries().min(AT_ONCE);
        for (key, _) in self.keys.lookup_batch(at_once, MapFlags::ANY, MapFlags::ANY)? {
            let mut argument = [0; size_of::<u64>()];
            argument.get_mut(..key.len()).context("the keys are too large")?.copy_from_slice(&key);
            if self.run_once(argument)? != 0 {
                found()?;
            }
        }
        Ok(())
    }

    fn run_once(&self, argument: [u8; size_of::<u64>()]) -> Result<u32> {
        let mut options = bpf_test_run_opts {
            sz: size_of::<bpf_test_run_opts>() as _,
            ctx_in: argument.as_ptr().cast(),
            ctx_size_in: argument.len() as u32,
            ..Default::default()
        };
        // SAFETY: the descriptor is open, and the kernel reads the argument and writes into `options` during the call only.
        let refused = unsafe { bpf_prog_test_run_opts(self.program.as_raw_fd(), &mut options) };
        if refused < 0 {
            return Err(std::io::Error::from_raw_os_error(-refused)).context("the kernel does not run the program");
        }
        Ok(options.retval)
    }
}
