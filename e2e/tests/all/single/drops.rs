//! Packets that the kernel drops: the socket and its owner beside what the program says it made, how many beside what it received and
//! what bpftrace counts by reason.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use systape_e2e::disk::{has, skipped};
use systape_e2e::{Background, Lab};

const EVENT: &str = "skb:kfree_skb";
/// Datagrams of the workload that a full socket gets, and that go to nobody.
const SENT: i64 = 61;
const NOBODYS: usize = 7;

/// What the workload says of itself.
fn said(text: &str) -> BTreeMap<String, i64> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
}

/// The fields of drops for this reason that `words` leave.
fn drops(lab: &Lab, tape: &str, reason: &str, words: &[&str]) -> Vec<Value> {
    let lines = lab.analyze(&[&[tape, "-e", EVENT, "--format", "json"], words].concat()).expect(0).json();
    lines.into_iter().map(|line| line["args"].clone()).filter(|args| args["reason"] == reason).collect()
}

/// The socket of a drop: name, ends, inode, owner.
fn socket(args: &Value) -> Value {
    let names = ["socket", "local", "remote", "inode", "owner_pid", "owner_comm"];
    Value::Array(names.map(|name| args[name].clone()).to_vec())
}

/// Numbers of reasons by name, as the kernel prints them; None: a kernel before 5.17 has none.
fn reasons() -> Option<BTreeMap<String, String>> {
    let text = fs::read_to_string("/sys/kernel/tracing/events/skb/kfree_skb/format").ok()?;
    let (_, list) = text.split_once("__print_symbolic(REC->reason,")?;
    let pairs = list.split('{').filter_map(|pair| pair.split_once('}')?.0.split_once(','));
    Some(pairs.map(|(number, name)| (name.trim().trim_matches('"').to_owned(), number.trim().to_owned())).collect())
}

/// Whether the kernel tells a receiver that has not got the packet yet (6.11).
fn tells_receivers() -> bool {
    fs::read_to_string("/sys/kernel/tracing/events/skb/kfree_skb/format").is_ok_and(|text| text.contains(" rx_sk;"))
}

/// The drops of the workload in `t.tape`; `owners`: whether the taker's descriptors are known.
fn assert_drops(lab: &Lab, said: &BTreeMap<String, i64>, owners: bool) {
    let full = drops(lab, "t.tape", "SOCKET_RCVBUFF", &[]);
    assert_eq!(full.len() as i64, SENT - said["received"], "{said:?}");
    let end = format!("127.0.0.1:{}", said["udp"]);
    let inode = full[0]["inode"].clone();
    assert!(inode.is_u64(), "{}", full[0]);
    let owner: [Value; 2] =
        if owners { [said["taker"].into(), "drop-taker".into()] } else { [Value::Null, Value::Null] };
    let [pid, comm] = owner;
    let expected = serde_json::json!([format!("UDP:[{end}]"), end, null, inode, pid, comm]);
    full.iter().for_each(|args| assert_eq!(socket(args), expected, "{said:?}"));

    let nobodys = drops(lab, "t.tape", "NO_SOCKET", &["--comm=drop-maker"]);
    assert_eq!(nobodys.len(), NOBODYS);
    nobodys.iter().for_each(|args| assert_eq!(socket(args), Value::Array(vec![Value::Null; 6])));

    // sent again at any time, by whoever runs then
    let mut filtered = drops(lab, "t.tape", "SOCKET_FILTER", &[]);
    let ends = [said["server"], said["client"]].map(|port| format!("127.0.0.1:{port}"));
    // what an earlier run's socket still sends is another socket's
    filtered.retain(|args| args["local"] == *ends[0]);
    assert!(!filtered.is_empty());
    for args in &filtered {
        // when the taker has ended, it is a socket without descriptors for a moment
        let name = format!("TCP:[{}->{}]", ends[0], ends[1]);
        assert_eq!(
            (&args["socket"], &args["local"], &args["remote"]),
            (&name.into(), &ends[0].as_str().into(), &ends[1].as_str().into())
        );
        let expected = if owners && !args["inode"].is_null() { said["taker"].into() } else { Value::Null };
        assert_eq!(args["owner_pid"], expected, "{args}");
    }
}

#[test]
fn a_dropped_packet_has_its_socket_and_its_owner() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !tells_receivers() {
        return skipped("this kernel does not tell the socket of a packet that is being received (6.11 does)");
    }
    let program = lab.cc("drops", &[]);
    // made meanwhile
    let run = lab.record("t.tape", &["-a", "-e", EVENT], &[&program]).expect(0);
    let said_by = said(&run.text());
    assert_drops(&lab, &said_by, true);
    lab.assert_whole("t.tape");
    let top = ["top", "t.tape", "-e", EVENT, "--by", "reason,socket,owner_comm", "--format", "json"];
    let rows = lab.analyze(&top).expect(0).json();
    let of_udp = |row: &&Value| row["fields"]["socket"] == format!("UDP:[127.0.0.1:{}]", said_by["udp"]);
    let row = rows.iter().find(of_udp).expect("the socket's row");
    assert_eq!(
        (&row["count"], &row["fields"]["owner_comm"]),
        (&(SENT - said_by["received"]).into(), &"drop-taker".into())
    );
    // addresses and names of programs are what redaction takes
    lab.analyze(&["redact", "t.tape", "r.tape", "--level", "all"]).expect(0);
    let redacted = lab.analyze(&["r.tape", "-e", EVENT, "--format", "json"]).expect(0).text();
    assert!(!redacted.contains("drop-taker") && !redacted.contains("127.0.0.1"), "{redacted}");
    // made before; of -p the descriptors of others are not known
    for (target, owners) in [("-a", true), ("-p", false)] {
        fs::remove_file(lab.path("go")).ok();
        let waits = Background::start(lab.command(&program).args(["go"]));
        let pid = waits.pid_text();
        lab.until("both names", || {
            let comm = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            comm(&pid) == "drop-maker\n" && children.split_whitespace().any(|child| comm(child) == "drop-taker\n")
        });
        let options: Vec<&str> = if target == "-a" { vec!["-a", "-e", EVENT] } else { vec!["-p", &pid, "-e", EVENT] };
        let record = lab.attach("t.tape", &options);
        // a process that ends before its files are read is nobody's owner, and this one does at once
        std::thread::sleep(Duration::from_secs(1));
        fs::write(lab.path("go"), "").expect("go");
        let run = waits.wait().expect(0);
        record.stop(libc::SIGINT).expect(0);
        // a busy machine leaves no time to read what each process has open
        let unread = lab.info("t.tape")["gaps"].to_string().contains("not-read");
        if unread {
            skipped("not all processes could be read in time");
            continue;
        }
        assert_drops(&lab, &said(&run.text()), owners);
    }
}

#[test]
fn there_are_as_many_as_bpftrace_counts() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(reasons) = reasons().filter(|_| has("bpftrace")) else { return };
    let script = r#"BEGIN { printf("ready\n"); } tracepoint:skb:kfree_skb { printf("%d %s\n", args->reason, comm); }"#;
    fs::write(lab.path("script.bt"), script).expect("script");
    let mut tracer = Background::start(lab.command("sh").args(["-c", "exec bpftrace -B line script.bt >bpftrace.out"]));
    let printed = || fs::read_to_string(lab.path("bpftrace.out")).unwrap_or_default();
    lab.until("bpftrace", || {
        assert!(tracer.ended().is_none(), "bpftrace ended");
        printed().contains("ready\n")
    });
    let program = lab.cc("drops", &[]);
    lab.record("t.tape", &["-a", "-e", EVENT], &[&program]).expect(0);
    // what is sent again later, others run
    for reason in ["SOCKET_RCVBUFF", "NO_SOCKET", "SOCKET_FILTER"] {
        let ours = drops(&lab, "t.tape", reason, &["--comm=drop-maker"]).len();
        assert!(ours > 0, "{reason}");
        let theirs = format!("{} drop-maker", reasons[reason]);
        lab.until("as many", || printed().lines().filter(|line| *line == theirs).count() == ours);
    }
}

#[test]
fn what_a_filter_drops_is_its_senders() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("nft") || !has("unshare") || reasons().is_none_or(|reasons| !reasons.contains_key("NETFILTER_DROP")) {
        return;
    }
    let script =
        "ip link set lo up && nft add table ip t && nft add chain ip t out '{ type filter hook output priority 0; }' \
                  && nft add rule ip t out udp dport 99 drop || exit 9
                  exec python3 -c \"import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 5555))
for i in range(5):
    try: s.sendto(b'x', ('127.0.0.1', 99))
    except PermissionError: pass\"";
    let run = lab.record("t.tape", &["-e", EVENT], &["unshare", "-n", "sh", "-c", script]);
    if run.status.code() == Some(9) {
        return skipped("this kernel has no netfilter");
    }
    let dropped = drops(&lab, "t.tape", "NETFILTER_DROP", &[]);
    assert_eq!(dropped.len(), 5);
    for args in &dropped {
        assert_eq!(
            (&args["socket"], &args["owner_comm"]),
            (&"UDP:[127.0.0.1:5555]".into(), &"python3".into()),
            "{args}"
        );
    }
}
