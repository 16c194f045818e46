//! Classes of fields: what a field reveals of people and machines.

/// What a field reveals: the schema's `$class`. Fields of class `none` reveal nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
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
    /// The recorded machine: its name and ids.
    Host,
    /// Names of users.
    User,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 7] =
        [Self::Path, Self::String, Self::Command, Self::Comm, Self::Address, Self::Host, Self::User];

    /// The class's name in the schema.
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

    /// The class of that name; None = `none`, or a class unknown to this version.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}
