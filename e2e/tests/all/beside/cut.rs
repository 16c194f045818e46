//! A cut of a recorded tape says what the tape says of that time, byte for byte; all cuts together say what the tape says.

use systape_e2e::Lab;

/// What is asked.
const REPORTS: [&[&str]; 13] = [
    &["--format", "json"],
    &["-e", "all,sched:*,signal:*,block:*,sock:*,process:*", "--call-graph"],
    &["-s", "--format", "json"],
    &["-s", "--cpu", "--summary-mode", "process"],
    &["kills", "--all", "--format", "json"],
    &["exec", "--tree", "--all"],
    &["sched", "timehist"],
    &["offcpu", "--by", "file,task,state,syscall", "--format", "json"],
    &["states", "--by", "process,state,syscall,file", "--format", "json"],
    &["block"],
    &["net", "--format", "json"],
    &["callgraph", "--of", "offcpu"],
    &["files", "--format", "json"],
];

/// Programs that live, die, are killed, change directories, connect and write, all the time.
const WORK: &str = r#"
python3 - <<'P' &
import socket, threading, time, os
server = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        other, _ = server.accept()
        other.send(other.recv(9)); other.close()
threading.Thread(target=serve, daemon=True).start()
end = time.time() + 2.5
while time.time() < end:
    s = socket.create_connection(server.getsockname()); s.send(b"x"); s.recv(9); s.close()
    f = os.open("f", os.O_CREAT | os.O_RDWR); os.write(f, b"y" * 5000); os.fsync(f); os.close(f)
P
for i in $(seq 25); do
    sleep 100 & kill -TERM $!
    (cd /usr; ls share | sort | tail -1)
    sh -c 'cd /tmp; sleep 0.02; cat no-such-file; exit 3'
done >/dev/null 2>&1
wait
"#;

#[test]
fn a_cut_of_a_recording_equals_its_time() {
    let Some(lab) = Lab::beside() else { return };
    lab.record("t.tape", &["-g", "-F", "49"], &["bash", "-c", WORK]).expect(0);
    lab.analyze(&["cut", "t.tape", "1.tape", "--time", "20%,55%"]).expect(0);
    for report in REPORTS {
        let ask = |more: &[&str]| lab.analyze(&[report, more].concat());
        let (before, after) = (ask(&["--time", "20%,55%", "t.tape"]), ask(&["1.tape"]));
        assert_eq!(before.expect(0).text(), after.expect(0).text(), "{report:?}");
    }
    lab.analyze(&["check", "1.tape"]).expect(0);
    lab.analyze(&["cut", "t.tape", "0.tape", "--time", ",20%"]).expect(0);
    lab.analyze(&["cut", "t.tape", "2.tape", "--time", "55%,"]).expect(0);
    lab.analyze(&["merge", "2.tape", "0.tape", "1.tape", "-o", "all.tape"]).expect(0);
    for report in REPORTS {
        let ask = |tape: &str| lab.analyze(&[report, &[tape]].concat()).expect(0).text();
        assert_eq!(ask("t.tape"), ask("all.tape"), "{report:?}");
    }
}
