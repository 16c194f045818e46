//! What a call is on whose path argument is empty, or a null pointer.

use systape_abi::{AT_FDCWD, ArgKind, describe};
use systape_format::model::CallState;

use crate::calls::CallInfo;

const EFAULT: u16 = 14;

/// What stands in place of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// An empty string.
    Empty,
    /// A null pointer.
    Null,
}

/// What such a call is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyPathTarget {
    /// What the path would be relative to: its descriptor, or the current directory.
    Base,
    /// Nothing: it fails for that.
    Nothing,
    /// Not known.
    Unknown,
}

/// The argument with the descriptor that the path in argument `path` is relative to; None: there is none.
pub fn dir(info: &CallInfo, path: usize) -> Option<usize> {
    (0..path).rev().find(|at| matches!(info.args[*at].kind, ArgKind::DirFd))
}

/// What a call is on whose path argument `path` is `given`. `args`: None = they cannot be read.
pub fn on(
    info: &CallInfo,
    path: usize,
    given: Given,
    args: Option<&[u64; 6]>,
    (state, errno): (CallState, u16),
) -> EmptyPathTarget {
    // acct(NULL) is on no file
    if given == Given::Null && dir(info, path).is_none() {
        return EmptyPathTarget::Nothing;
    }
    if state.returned() && errno == 0 {
        return EmptyPathTarget::Base;
    }
    let desc = describe(info.abi, info.call.nr);
    // without the enter they are not known
    let Some((desc, args)) = desc.zip(args.filter(|_| state != CallState::LostEnter)) else {
        return EmptyPathTarget::Unknown;
    };
    let takes = match given {
        Given::Empty => desc.takes_empty_path(path, args),
        // of the current directory too, if the kernel is new enough
        Given::Null => desc.takes_null_path(path, args) && !(errno == EFAULT && is_cwd(info, path, args)),
    };
    if takes { EmptyPathTarget::Base } else { EmptyPathTarget::Nothing }
}

/// Whether a relative path in argument `path` is relative to the current directory.
pub fn is_cwd(info: &CallInfo, path: usize, args: &[u64; 6]) -> bool {
    dir(info, path).is_none_or(|dir| args[dir] as i32 == AT_FDCWD)
}

#[cfg(test)]
mod tests {
    use systape_abi::{Abi, number};
    use systape_format::model::{Call, Session};

    use super::*;
    use crate::calls::CallBook;

    /// What a call with these arguments is on.
    fn of(name: &str, given: Given, args: Option<[u64; 6]>, ended: (CallState, u16)) -> EmptyPathTarget {
        let session = Session { machine: "x86_64".into(), ..Session::default() };
        let call = CallBook::new(&session).get(Call { abi: 1, nr: number(Abi::X86_64, name).unwrap() });
        let path = call.args.iter().position(|arg| matches!(arg.kind, ArgKind::Path)).unwrap();
        on(&call, path, given, args.as_ref(), ended)
    }

    #[test]
    fn the_flag_says_it_where_the_result_does_not() {
        use CallState::{Complete, InFlight, Killed, LostEnter};
        const ENOENT: u16 = 2;
        let (with, without) = (Some([3, 0, 0, 0x1000, 0, 0]), Some([3, 0, 0, 0, 0, 0]));
        let fstatat = |args, ended| of("newfstatat", Given::Empty, args, ended);
        assert_eq!(fstatat(with, (Complete, 0)), EmptyPathTarget::Base);
        assert_eq!(fstatat(with, (Complete, EFAULT)), EmptyPathTarget::Base, "of the result's memory");
        assert_eq!([InFlight, Killed].map(|state| fstatat(with, (state, 0))), [EmptyPathTarget::Base; 2]);
        assert_eq!(fstatat(without, (Complete, ENOENT)), EmptyPathTarget::Nothing);
        assert_eq!(fstatat(without, (Killed, 0)), EmptyPathTarget::Nothing);
        // without arguments only a success says it
        assert_eq!(fstatat(None, (Complete, 0)), EmptyPathTarget::Base);
        assert_eq!(fstatat(None, (Complete, ENOENT)), EmptyPathTarget::Unknown);
        assert_eq!(fstatat(without, (LostEnter, ENOENT)), EmptyPathTarget::Unknown);
    }

    #[test]
    fn a_null_pointer_is_the_descriptor_where_the_kernel_takes_it() {
        let cwd = AT_FDCWD as u32 as u64;
        let failed = |errno| (CallState::Complete, errno);
        let utimensat = |dir, ended| of("utimensat", Given::Null, Some([dir, 0, 0, 0, 0, 0]), ended);
        assert_eq!(utimensat(3, failed(1)), EmptyPathTarget::Base);
        assert_eq!(utimensat(cwd, failed(EFAULT)), EmptyPathTarget::Nothing);
        let statx = |flags, errno| of("statx", Given::Null, Some([cwd, 0, flags, 0, 0, 0]), failed(errno));
        assert_eq!(
            [statx(0x1000, 0), statx(0x1000, EFAULT), statx(0, EFAULT)],
            [EmptyPathTarget::Base, EmptyPathTarget::Nothing, EmptyPathTarget::Nothing]
        );
        let acct = of("acct", Given::Null, Some([0; 6]), failed(0));
        assert_eq!(acct, EmptyPathTarget::Nothing);
    }
}
