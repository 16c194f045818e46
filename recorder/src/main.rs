//! The command `record`.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use systape_recorder::args::Args;
use systape_recorder::config::Config;
use systape_recorder::run;

/// `record` itself failed, as env(1) and timeout(1) have it.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(what) = &args.generate {
        return generate(what);
    }
    let status = Config::new(args).and_then(|config| {
        for note in config.selection.notes() {
            eprintln!("record: {note}");
        }
        run::record(&config)
    });
    match status {
        Ok(status) => ExitCode::from(status),
        Err(e) => {
            eprintln!("record: {e:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// Man page or completions on standard output.
fn generate(what: &str) -> ExitCode {
    let mut command = Args::command();
    let mut out = std::io::stdout();
    let done = match what {
        "man" => clap_mangen::Man::new(command).render(&mut out),
        shell => match shell.parse::<clap_complete::Shell>() {
            Ok(shell) => {
                clap_complete::generate(shell, &mut command, "record", &mut out);
                Ok(())
            }
            Err(_) => {
                eprintln!("record: --generate {what}: one of man, bash, zsh, fish, elvish, powershell");
                return ExitCode::from(2);
            }
        },
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}
