//! What fields tell of people and machines.

/// What a field tells of somebody: the schema's `$class`. Fields of class `none` tell nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Names of files, directories, cgroups and kernel modules.
    Path,
    /// User memory.
    String,
    /// Command lines.
    Command,
    /// Names of threads.
    Comm,
    /// Network addresses and ports.
    Address,
    /// Which machine it was.
    Host,
    /// Names of users.
    User,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Path, Self::String, Self::Command, Self::Comm, Self::Address, Self::Host, Self::User];

    /// As the schema has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::String => "string",
            Self::Command => "command",
            Self::Comm => "comm",
            Self::Address => "address",
            Self::Host => "host",
            Self::User => "user",
        }
    }

    /// The class of that name; None = `none`, or one this version does not know.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}
