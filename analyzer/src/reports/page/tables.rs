//! The tables of the page: which reports, which of their columns.

use super::answers::{Answer, Asker, Row};
use super::figure::{Column, Kind, cell};
use super::html::Html;

/// Most rows of a table.
const MOST: usize = 300;
/// Most messages above a table.
const TOLD: usize = 4;

/// A text with so many characters stays on one line.
const SHORT: usize = 30;

/// A table of the page.
struct Shown {
    id: &'static str,
    title: &'static str,
    words: &'static str,
    columns: &'static [Column],
}

const fn column(name: &'static str, heading: &'static str, kind: Kind) -> Column {
    Column { name, heading, kind }
}

/// Sums of calls, behind their keys.
macro_rules! sums {
    ($($key:expr),+) => {
        &[
            $($key,)+
            column("calls", "Calls", Kind::Count),
            column("errors", "Errors", Kind::Count),
            column("total_ns", "Time", Kind::Span),
            column("share_percent", "Share", Kind::Percent),
            column("avg_ns", "Mean", Kind::Span),
            column("p99_ns", "p99", Kind::Span),
            column("max_ns", "Longest", Kind::Span),
        ]
    };
}

const COMM: Column = column("comm", "Program", Kind::Text);
const CALL: Column = column("syscall", "Call", Kind::Text);

/// In their order.
static TABLES: &[Shown] = &[
    Shown { id: "by-syscall", title: "Calls by name", words: "top --by syscall", columns: sums!(CALL) },
    Shown {
        id: "by-process",
        title: "Calls by process",
        words: "top --by pid",
        columns: sums!(column("pid", "Process", Kind::Id), COMM),
    },
    Shown {
        id: "by-file",
        title: "Calls by file",
        words: "top --by file",
        columns: sums!(column("file", "File", Kind::Text)),
    },
    Shown {
        id: "errors",
        title: "Calls that failed",
        words: "top --failure --metric calls --by syscall,errno,comm",
        columns: sums!(CALL, column("errno", "Error", Kind::Text), COMM),
    },
    Shown {
        id: "waits",
        title: "Time off the CPU",
        words: "offcpu",
        columns: &[
            COMM,
            column("state", "State", Kind::Text),
            CALL,
            column("total_ns", "Time", Kind::Span),
            column("share", "Share", Kind::Part),
            column("count", "Times", Kind::Count),
            column("avg_ns", "Mean", Kind::Span),
            column("max_ns", "Longest", Kind::Span),
        ],
    },
    Shown {
        id: "latency",
        title: "Waiting for a CPU",
        words: "sched latency",
        columns: &[
            COMM,
            column("threads", "Threads", Kind::Count),
            column("run_ns", "On a CPU", Kind::Span),
            column("switches", "Switches", Kind::Count),
            column("delays", "Waits", Kind::Count),
            column("avg_delay_ns", "Mean", Kind::Span),
            column("max_delay_ns", "Longest", Kind::Span),
            column("max_delay_start_ns", "At", Kind::Time),
        ],
    },
    Shown {
        id: "locks",
        title: "Locks",
        words: "locks",
        columns: &[
            COMM,
            column("pid", "Process", Kind::Id),
            column("kind", "Kind", Kind::Text),
            column("waits", "Waits", Kind::Count),
            column("total_ns", "Time", Kind::Span),
            column("max_ns", "Longest", Kind::Span),
        ],
    },
    Shown {
        id: "disks",
        title: "Block I/O by disk",
        words: "block --top --by disk,op",
        columns: &[
            column("disk", "Disk", Kind::Text),
            column("op", "Operation", Kind::Text),
            column("ios", "I/Os", Kind::Count),
            column("read_bytes", "Read", Kind::Bytes),
            column("written_bytes", "Written", Kind::Bytes),
            column("errors", "Errors", Kind::Count),
            column("total_ns", "Time", Kind::Span),
            column("avg_ns", "Mean", Kind::Span),
            column("max_ns", "Longest", Kind::Span),
        ],
    },
    Shown {
        id: "net",
        title: "Network by process and peer",
        words: "net --by comm,peer",
        columns: &[
            COMM,
            column("peer", "Peer", Kind::Text),
            column("connections", "Connections", Kind::Count),
            column("failed", "Failed", Kind::Count),
            column("sent_bytes", "Sent", Kind::Bytes),
            column("received_bytes", "Received", Kind::Bytes),
        ],
    },
];

/// Estimates by looks, behind their keys.
macro_rules! seen {
    ($($key:expr),+) => {
        &[
            $($key,)+
            column("threads", "Threads at once", Kind::Average),
            column("threads_low", "at least", Kind::Average),
            column("threads_high", "at most", Kind::Average),
            column("time_ns", "Time", Kind::Span),
            column("share", "Share", Kind::Part),
            column("looks", "Looks", Kind::Count),
            column("longest_ns", "Longest", Kind::Span),
        ]
    };
}

/// Those of a tape of looks, in their order.
static OF_LOOKS: &[Shown] = &[
    Shown {
        id: "seen",
        title: "What threads were in, by looks (95 % bounds)",
        words: "stays",
        columns: seen!(column("state", "State", Kind::Text), CALL, column("file", "On", Kind::Text)),
    },
    Shown {
        id: "seen-by-process",
        title: "By process, by looks",
        words: "stays --by pid,state",
        columns: seen!(column("pid", "Process", Kind::Id), COMM, column("state", "State", Kind::Text)),
    },
    Shown {
        id: "longest-stays",
        title: "The longest stays that looks found",
        words: "stays --longest",
        columns: &[
            column("lasted_ns", "For", Kind::Span),
            column("ts_ns", "Found at", Kind::Time),
            column("pid", "Process", Kind::Id),
            column("tid", "Thread", Kind::Id),
            COMM,
            column("state", "State", Kind::Text),
            CALL,
            column("file", "On", Kind::Text),
            column("path", "Path", Kind::Text),
            column("owner_tid", "Held by", Kind::Id),
        ],
    },
    Shown {
        id: "seen-locks",
        title: "Locks that looks found threads waiting for",
        words: "locks",
        columns: &[
            COMM,
            column("pid", "Process", Kind::Id),
            column("threads", "Threads at once", Kind::Average),
            column("threads_low", "at least", Kind::Average),
            column("threads_high", "at most", Kind::Average),
            column("time_ns", "Time", Kind::Span),
            column("longest_ns", "Longest", Kind::Span),
            column("owner_tid", "Held by", Kind::Id),
            column("owner_comm", "Its name", Kind::Text),
        ],
    },
];

/// All tables that have rows, and what the others lack; `of_looks`: of a tape of looks.
pub(super) fn all(asker: &Asker<'_>, of_looks: bool) -> Html {
    let mut html = Html::default();
    html.raw("<section id=\"tables\"><h2>Tables</h2>");
    let mut lacking = Vec::new();
    for shown in if of_looks { OF_LOOKS } else { TABLES } {
        let answer = asker.rows(shown.words, MOST);
        match &answer.none {
            Some(why) => lacking.push(format!("{}: {why}", shown.title)),
            None if answer.rows.is_empty() => lacking.push(format!("{}: nothing", shown.title)),
            None => {
                html.raw("<details open class=\"tab\"").attr("id", shown.id).raw("><summary><h3>").text(shown.title);
                html.raw("</h3></summary>");
                notes(&answer, &mut html);
                table(shown.columns, &answer.rows, &mut html);
                foot(&answer, &mut html);
                html.raw("</details>");
            }
        }
    }
    if !lacking.is_empty() {
        html.raw("<p class=\"muted\">Not shown: ").text(&lacking.join("; ")).raw("</p>");
    }
    html.raw("</section>");
    html
}

/// What was said beside an answer.
pub(super) fn notes(answer: &Answer, html: &mut Html) {
    for told in answer.told.iter().take(TOLD) {
        html.raw("<p class=\"note\">").text(told).raw("</p>");
    }
}

/// How many rows are left out, and the command that prints all.
pub(super) fn foot(answer: &Answer, html: &mut Html) {
    html.raw("<p class=\"foot\">");
    if answer.more > 0 {
        html.text(&format!("{} more rows. ", answer.more));
    }
    html.raw("<code>analyze ").text(&answer.command).raw("</code></p>");
}

/// Appends `rows` as a table.
pub(super) fn table(columns: &[Column], rows: &[Row], html: &mut Html) {
    html.raw("<div class=\"wide\"><table class=\"data\"><thead><tr>");
    for column in columns {
        html.raw(if column.kind.is_number() { "<th class=\"n\" scope=\"col\">" } else { "<th scope=\"col\">" });
        html.text(column.heading).raw("</th>");
    }
    html.raw("</tr></thead><tbody>");
    for row in rows {
        html.raw("<tr>");
        for column in columns {
            let cell = cell(row, column);
            let short = cell.text.chars().count() <= SHORT;
            html.raw(match (column.kind.is_number(), short) {
                (true, _) => "<td class=\"n\"",
                (false, true) => "<td class=\"s\"",
                (false, false) => "<td",
            });
            if let Some(key) = cell.key {
                html.attr("data-v", &key.to_string());
            }
            html.raw(">").text(&cell.text).raw("</td>");
        }
        html.raw("</tr>");
    }
    html.raw("</tbody></table></div>");
}
