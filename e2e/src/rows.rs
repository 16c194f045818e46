//! Rows of tables that a tape defines itself.

use serde_json::Value;

use crate::Lab;

impl Lab {
    /// Rows of a table, and lines about lost ones, in JSON.
    #[track_caller]
    pub fn rows(&self, tape: &str, table: &str) -> Vec<Value> {
        let run = self.analyze(&[tape, "-e", table, "--format", "json"]).expect(0);
        assert_eq!(run.complaints(), "");
        run.json()
    }
}

/// The values of a row that is none about loss.
#[track_caller]
pub fn args(row: &Value) -> &Value {
    assert!(row.get("lost").is_none(), "{row}");
    &row["args"]
}
