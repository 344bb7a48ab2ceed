//! Messages run by children that do nothing, one a core, beside a bare loop over the pipes of such children.
//!
//! The children are Python, as many users' will be. Each measures how long it waits between an answer and the next
//! message, and tells that at the end of its input.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    num::NonZero,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use baton::{
    QueuePolicy,
    builtin::Exec,
    pool::{Limits, Program},
};

use super::{Figures, Plan, folder::Folder, node_run, report::Figure, samples::median, say, target::Target};
use crate::failure::Failure;

/// The most messages of a round.
const MOST: u64 = 100_000;
const QUEUE: &str = "programs";

/// Reads each message and answers it, as README shows, and writes the microseconds between an answer and the next message
/// to a file in the folder it is given: those that half of them do not exceed.
const CHILD: &str = r#"
import json, os, sys, time
waits, since = [], None
for line in sys.stdin:
    now = time.perf_counter_ns()
    if since:
        waits.append(now - since)
    message = json.loads(line)
    print(json.dumps({"id": message["id"], "event": "end"}), flush=True)
    since = time.perf_counter_ns()
if waits:
    with open(os.path.join(sys.argv[1], str(os.getpid())), "w") as file:
        file.write(str(sorted(waits)[len(waits) // 2] / 1000))
"#;

/// Rates of both, and how long a child waits for its next message.
pub(super) async fn measure(plan: &Plan, target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    if Command::new("python3").arg("-c").arg("").status().is_err() {
        say(target, "there is no python3: children are not measured");
        return Ok(());
    }
    let children = thread::available_parallelism().map_or(1, NonZero::get);
    let count = (plan.messages / 10).clamp(1_000, MOST);
    figures.counted("messages run by children", count);
    let (mut through, mut raw, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        say(target, &format!("children, round {round} of {}", plan.rounds));
        let (folder, of_bare) = (Folder::make()?, Folder::make()?);
        raw.push(bare_loop(children, count, of_bare.path().to_owned()).await?);
        let program = Program::new("python3", ["-c".as_ref(), CHILD.as_ref(), folder.path().as_os_str()]);
        let exec = Exec::new(program, Limits { children, ..Limits::default() });
        let policy = QueuePolicy { concurrency: children, ..QueuePolicy::default() };
        through.push(node_run::rate(target, QUEUE, policy, exec.clone(), count).await?);
        exec.close().await;
        let told = fs::read_dir(folder.path()).into_iter().flatten().flatten();
        let told = told.filter_map(|file| fs::read_to_string(file.path()).ok()?.parse::<f64>().ok());
        waits.extend(told);
    }
    figures.exec_per_s = Figure(median(&through));
    figures.raw_exec_per_s = Figure(median(&raw));
    figures.exec_wait_us = Figure(median(&waits));
    Ok(())
}

/// Lines a second to and from such children, by a thread for each that does nothing else.
async fn bare_loop(children: usize, count: u64, folder: PathBuf) -> Result<f64, Failure> {
    let share = count.div_ceil(children as u64);
    let talk = move |folder: &Path| -> std::io::Result<()> {
        let mut child = Command::new("python3")
            .args(["-c", CHILD])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { return Ok(()) };
        let (mut output, mut answer) = (BufReader::new(output), String::new());
        for id in 0..share {
            let line = format!(
                "{{\"id\":{id},\"key\":\"{QUEUE}/{id}@1763300000000\",\"queue\":\"{QUEUE}\",\"attempt\":1,\"body\":{id}}}\n"
            );
            input.write_all(line.as_bytes())?;
            answer.clear();
            output.read_line(&mut answer)?;
        }
        drop(input);
        child.wait().map(drop)
    };
    let all = move || {
        let begun = Instant::now();
        let ended = thread::scope(|scope| {
            let threads: Vec<_> = (0..children).map(|_| scope.spawn(|| talk(&folder))).collect();
            threads.into_iter().all(|thread| matches!(thread.join(), Ok(Ok(()))))
        });
        ended.then(|| (share * children as u64) as f64 / begun.elapsed().as_secs_f64())
    };
    let rate = tokio::task::spawn_blocking(all).await.ok().flatten();
    rate.ok_or_else(|| Failure::new("a child of the measurement failed", "run the command again"))
}
