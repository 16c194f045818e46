//! Connections of a target whose other ends are strangers, for each kind of target: all of the target's, with exact bounds, and nobody else's.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use systape_e2e::disk::skipped;
use systape_e2e::more::{Cgroup, NOBODY};
use systape_e2e::{Background, Lab};

const MS: i64 = 1_000_000;

/// Lines "WHAT PORT NS" of a log, by port.
fn logged(text: &str) -> BTreeMap<i64, (String, i64)> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[1].parse().expect("port"), (words[0].to_owned(), words[2].parse().expect("ns")))
    };
    text.lines().map(line).collect()
}

/// A server that listens already.
struct Server {
    program: String,
    process: Background,
    port: i64,
    tid: String,
}

/// The number behind a word of a file.
fn said(lab: &Lab, file: &str, word: &str) -> String {
    let find = || {
        let text = fs::read_to_string(lab.path(file)).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()))
    };
    lab.until(word, || find().is_some());
    find().expect(word)
}

/// Starts the server with `mode` behind commands of a shell, by a program that starts others.
fn serve(lab: &Lab, before: &str, by: &str, mode: &str) -> Server {
    let program = lab.cc("sockets", &[]);
    let text = format!("{before} exec >out {by} {program} server {mode}");
    let process = Background::start(lab.command("sh").args(["-c", &text]));
    let port = said(lab, "out", "port ").parse().expect("port");
    let tid = said(lab, "out", "tid ");
    Server { program, process, port, tid }
}

fn touch(lab: &Lab, name: &str) {
    fs::write(lab.path(name), "").expect("write");
}

#[track_caller]
fn rows(lab: &Lab, arguments: &[&str]) -> Vec<Value> {
    let run = lab.analyze(&[&["net", "t.tape", "--format", "json"], arguments].concat()).expect(0);
    assert_eq!(run.complaints(), "");
    run.json()
}

/// The tape has the connections of the log and no other socket than they and the listener.
#[track_caller]
fn assert_the_servers(lab: &Lab, port: i64, log: &BTreeMap<i64, (String, i64)>) {
    lab.assert_whole("t.tape");
    let connections = rows(lab, &[]);
    for row in &connections {
        assert_eq!((&row["laddr"], row["lport"].as_i64()), (&"127.0.0.1".into(), Some(port)), "a stranger's: {row}");
    }
    let (listeners, accepted): (Vec<&Value>, Vec<&Value>) =
        connections.iter().partition(|row| row["direction"] == "listen");
    assert!(listeners.len() <= 1, "{listeners:?}");
    assert_eq!(accepted.len(), log.len(), "{accepted:?}\n{log:?}");
    for row in accepted {
        let remote = row["rport"].as_i64().expect("remote port");
        let (what, ns) = &log[&remote];
        let dur = row["dur_ns"].as_i64().expect("a bound");
        let (outcome, exact) = match what.as_str() {
            "early" => ("reset", false),
            "reset" => ("reset", true),
            _ => ("closed", true),
        };
        assert_eq!((&row["outcome"], &row["dur_ns_at_least"]), (&outcome.into(), &(!exact).into()), "{row}");
        if exact {
            assert_eq!(row["direction"], "accept", "{row}");
            // closed a little after the client closed its end
            assert!(dur >= 10 * MS && dur < ns + 100 * MS, "{ns} ns: {row}");
        }
    }
    for change in rows(lab, &["--events"]) {
        assert_eq!((&change["laddr"], change["lport"].as_i64()), (&"127.0.0.1".into(), Some(port)), "{change}");
    }
}

/// Records a server that listens already with `options` while strangers connect.
#[track_caller]
fn attached(lab: &Lab, server: Server, options: &[&str]) {
    let port = server.port.to_string();
    let early =
        Background::start(lab.command("sh").args(["-c", &format!("exec >early {} early {port}", server.program)]));
    lab.until_file("early");
    let recorder = lab.attach("t.tape", options);
    touch(lab, "recording");
    early.wait().expect(0);
    touch(lab, "go");
    let client = Background::start(lab.command(&server.program).args(["client", &port])).wait().expect(0);
    touch(lab, "stop");
    server.process.wait().expect(0);
    recorder.stop(libc::SIGINT).expect(0);
    let mut log = logged(&client.text());
    log.extend(logged(&fs::read_to_string(lab.path("early")).expect("early")));
    assert_eq!(log.len(), 9);
    assert_the_servers(lab, server.port, &log);
}

#[test]
fn of_a_process_that_listens_already() {
    let Some(lab) = Lab::beside() else { return };
    let server = serve(&lab, "", "", "");
    let pid = server.process.pid_text();
    attached(&lab, server, &["-p", &pid]);
}

#[test]
fn of_a_thread_of_a_server() {
    let Some(lab) = Lab::beside() else { return };
    let server = serve(&lab, "", "", "thread");
    let tid = server.tid.clone();
    attached(&lab, server, &["-t", &tid]);
}

#[test]
fn of_a_user() {
    let Some(lab) = Lab::with_bpf() else { return };
    let server = serve(&lab, "", &NOBODY.join(" "), "");
    attached(&lab, server, &["-u", "65534"]);
}

#[test]
fn of_a_name() {
    let Some(lab) = Lab::with_bpf() else { return };
    let server = serve(&lab, "", "", "");
    attached(&lab, server, &["--comm", "netserver"]);
}

#[test]
fn of_a_cgroup() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(cgroup) = Cgroup::new("systape-e2e-net") else {
        return skipped("there is no cgroup v2 hierarchy");
    };
    let server = serve(&lab, &format!("echo $$ > {}/cgroup.procs;", cgroup.dir()), "", "");
    attached(&lab, server, &["-G", cgroup.dir()]);
}

#[test]
fn of_a_command_and_its_children() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("sockets", &[]);
    let text = format!("{program} server >out & wait");
    let recorder = Background::start(lab.record_command("t.tape", &[], &["sh", "-c", &text]));
    touch(&lab, "go");
    let port = said(&lab, "out", "port ");
    let client = Background::start(lab.command(&program).args(["client", &port])).wait().expect(0);
    touch(&lab, "stop");
    recorder.wait().expect(0);
    assert_the_servers(&lab, port.parse().expect("port"), &logged(&client.text()));
    let listen = rows(&lab, &[]).into_iter().find(|row| row["direction"] == "listen").expect("the listener");
    assert_eq!(listen["dur_ns_at_least"], false, "{listen}");
}

#[test]
fn a_listener_without_a_name_has_no_strangers_and_ports_are_known_at_the_end() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("sockets", &[]);
    let server = serve(&lab, "", "", "");
    touch(&lab, "go");
    let stranger = format!("while [ ! -e stop ]; do {program} client {} >/dev/null; done", server.port);
    let stranger = Background::start(lab.command("sh").args(["-c", &stranger]));
    // it listens on a port the kernel chooses, and is refused: all of it its own
    let text = "import socket,time; l=socket.socket(); l.listen(5); c=socket.socket(); c.connect_ex(('127.0.0.1',1)); \
                print(l.getsockname()[1]); time.sleep(0.5)";
    let run = lab.record("t.tape", &[], &["python3", "-c", text]).expect(0);
    touch(&lab, "stop");
    stranger.wait();
    server.process.wait().expect(0);
    let port: i64 = run.text().trim().parse().expect("port");
    let found = rows(&lab, &[]);
    let [refused, listener] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&refused["outcome"], &refused["rport"]), (&"failed".into(), &1.into()), "{refused}");
    assert!(refused["lport"].as_i64().is_some_and(|port| port > 0), "{refused}");
    assert_eq!((&listener["direction"], listener["lport"].as_i64()), (&"listen".into(), Some(port)), "{listener}");
    for change in rows(&lab, &["--events"]).iter().filter(|change| change["new_state"] == "CLOSE") {
        assert!(change["lport"].as_i64().is_some_and(|port| port > 0), "{change}");
    }
}
