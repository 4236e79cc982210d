//! Processor time and memory of processes, read from Linux's `/proc`; NaN on other systems.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// Length of a tick of `/proc`, microseconds: `USER_HZ` is 100 on Linux, independently of the kernel's own
/// clock.
const TICK_US: f64 = 10_000.0;

/// Most readings of processes that come and go.
const MAX_READS: usize = 100;

/// A process that is measured, with its children.
#[derive(Clone, Debug)]
pub(super) struct MeasuredProcess {
    pub(super) name: String,
    pub(super) pid: u32,
}

/// Processor time of each process and its children since its start, microseconds. Children that have ended
/// are included as soon as their parent has waited for them.
pub(super) fn cpu_us(watched: &[MeasuredProcess]) -> Vec<f64> {
    let is_watched =
        |stat: &Stat| watched.iter().any(|watched| [stat.pid, stat.parent].contains(&watched.pid));
    let read = || processes().into_iter().filter(is_watched).collect::<Vec<_>>();
    let mut stats = read();
    // A child that ends between the reading of its parent and its own is in neither: read again until the
    // same processes were there twice.
    for _ in 0..MAX_READS {
        let before = std::mem::replace(&mut stats, read());
        if before.iter().map(|stat| stat.pid).eq(stats.iter().map(|stat| stat.pid)) {
            break;
        }
    }
    let cost = |watched: &MeasuredProcess| {
        let family = stats.iter().filter(|stat| stat.pid == watched.pid || stat.parent == watched.pid);
        family.map(|stat| stat.own_us + stat.ended_children_us).reduce(|one, other| one + other)
    };
    watched.iter().map(|watched| cost(watched).unwrap_or(f64::NAN)).collect()
}

/// Processor time of the calling thread, microseconds.
pub(super) fn thread_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Processor time of this process, without its children, microseconds.
pub(super) fn process_us() -> f64 {
    this_process().map_or(f64::NAN, |stat| stat.own_us)
}

/// Processor time of the calling thread and of the children of this process that have ended, microseconds.
pub(super) fn children_us() -> f64 {
    this_process().map_or(f64::NAN, |stat| stat.ended_children_us) + thread_us()
}

/// Processor time of the whole machine since its start: used and available, microseconds.
pub(super) fn machine_us() -> [f64; 2] {
    let stat = fs::read_to_string("/proc/stat").ok();
    stat.and_then(|stat| machine(&stat)).unwrap_or([f64::NAN; 2])
}

fn machine(stat: &str) -> Option<[f64; 2]> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // Columns: user, nice, system, idle, iowait, irq, softirq, steal; the later ones are included in these.
    // Interrupts are not counted as used: most come from the load, and no process is charged for them.
    let ticks: Vec<f64> =
        all.split_ascii_whitespace().take(8).filter_map(|ticks| ticks.parse().ok()).collect();
    let [user, nice, system, _, _, _, _, stolen] = ticks[..] else { return None };
    Some([(user + nice + system + stolen) * TICK_US, ticks.iter().sum::<f64>() * TICK_US])
}

/// Resident memory of a process, KiB.
pub(crate) fn memory_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// One line of `/proc/<pid>/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    pid: u32,
    parent: u32,
    own_us: f64,
    ended_children_us: f64,
}

impl Stat {
    fn read(line: &str) -> Option<Self> {
        // The name is in parentheses, and may itself contain parentheses and blanks.
        let (pid, rest) = line.split_once(" (")?;
        let fields: Vec<&str> = rest.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
        Some(Self {
            pid: pid.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            own_us: (ticks(11)? + ticks(12)?) * TICK_US,
            ended_children_us: (ticks(13)? + ticks(14)?) * TICK_US,
        })
    }
}

fn this_process() -> Option<Stat> {
    Stat::read(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// All processes; those that end meanwhile are left out.
fn processes() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = entries.filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let read = |entry: fs::DirEntry| Stat::read(&fs::read_to_string(entry.path().join("stat")).ok()?);
    numbered.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_name() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194304 100 0 0 0 11 12 13 14 20 0 1 0 9 9 9";
        let stat = Stat { pid: 42, parent: 7, own_us: 230_000.0, ended_children_us: 270_000.0 };
        assert_eq!(Stat::read(line), Some(stat));
        assert_eq!(Stat::read("42 (short) S 7"), None);
    }

    #[test]
    fn a_machine_that_waits_is_not_used() {
        assert_eq!(machine("cpu  1 2 3 40 50 6 7 8 1 0\ncpu0 1 1 1\n"), Some([140_000.0, 1_170_000.0]));
        assert_eq!(machine("intr 1\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_that_has_ended_still_counts() {
        let watched = [MeasuredProcess { name: "this".into(), pid: std::process::id() }];
        let before = cpu_us(&watched)[0];
        let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let ended = std::process::Command::new("/bin/sh").args(["-c", burn]).status().unwrap();
        assert!(ended.success());
        assert!(cpu_us(&watched)[0] >= before + 2.0 * TICK_US);
        assert!(children_us() >= 2.0 * TICK_US);
        assert!(memory_kib(std::process::id()).unwrap() > 1024);
        assert!(cpu_us(&[MeasuredProcess { name: "none".into(), pid: u32::MAX }])[0].is_nan());
    }
}
