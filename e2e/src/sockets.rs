//! What a tape calls its sockets. A name that is made of addresses is without the socket's number, which the table
//! `socket:name` has.

use std::collections::{BTreeMap, BTreeSet};

use crate::Lab;

/// Names made of addresses, and the sockets that had them.
#[derive(Debug, Default)]
pub struct Inodes(BTreeMap<String, BTreeSet<i64>>);

impl Inodes {
    /// Those of a tape.
    #[track_caller]
    pub fn of(lab: &Lab, tape: &str) -> Self {
        let mut inodes = Self::default();
        if lab.info(tape)["events"]["socket:name"].is_null() {
            return inodes;
        }
        for row in lab.analyze(&[tape, "-e", "socket:name", "--format", "json"]).expect(0).json() {
            let text = |column: &str| row["args"][column].as_str();
            let remote = text("remote").map(|remote| format!("->{remote}")).unwrap_or_default();
            let name = format!("{}:[{}{remote}]", text("protocol").expect("protocol"), text("local").expect("local"));
            inodes.0.entry(name).or_default().insert(row["args"]["inode"].as_i64().expect("inode"));
        }
        inodes
    }

    /// How many such names there are.
    #[expect(clippy::len_without_is_empty, reason = "a test asks for more than none")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the socket with this number had this name.
    pub fn has(&self, name: &str, inode: i64) -> bool {
        let inside = name.split_once(":[").filter(|(kind, _)| *kind != "pipe").map(|(_, inside)| inside);
        let number = inside.map(|inside| inside.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
        match self.0.get(name) {
            Some(inodes) => inodes.contains(&inode),
            None => number == Some(&inode.to_string()),
        }
    }
}
