//! Figures of the process itself, read from `/proc/self`.
//!
//! **Invariant:** a figure that cannot be read is left out, never made up.

use std::fmt::Write as _;

/// Adds version, memory, processor time, threads and open files. `role` is a label.
pub(crate) fn metrics(role: &str, out: &mut String) {
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(
        out,
        "# TYPE rocketmq_build_info gauge\n\
         rocketmq_build_info{{version=\"{version}\",role=\"{role}\"}} 1"
    );
    if let Some(usage) = status() {
        gauge(out, "process_resident_memory_bytes", usage.resident_bytes);
        gauge(out, "process_threads", usage.threads);
    }
    let seconds = cpu_seconds();
    let _ = writeln!(
        out,
        "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total {seconds}"
    );
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        gauge(out, "process_open_fds", files.count() as u64);
    }
}

fn gauge(out: &mut String, name: &str, value: u64) {
    let _ = writeln!(out, "# TYPE {name} gauge\n{name} {value}");
}

struct Usage {
    resident_bytes: u64,
    threads: u64,
}

fn status() -> Option<Usage> {
    parse_status(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_status(text: &str) -> Option<Usage> {
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':')
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    Some(Usage {
        resident_bytes: field("VmRSS")?.checked_mul(1024)?,
        threads: field("Threads")?,
    })
}

/// Time on the processor, from the scheduler's own count.
fn cpu_seconds() -> f64 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    clock.tv_sec as f64 + clock.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_threads_are_read_from_the_status_text() {
        let usage = parse_status("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t7\n").unwrap();
        assert_eq!((usage.resident_bytes, usage.threads), (2 << 20, 7));
        assert!(parse_status("Name:\tx\n").is_none());
    }

    #[test]
    fn the_figures_of_this_process_are_there() {
        let mut out = String::new();
        metrics("test", &mut out);
        for name in [
            "rocketmq_build_info{",
            "process_resident_memory_bytes ",
            "process_cpu_seconds_total ",
        ] {
            assert!(
                out.lines().any(|line| line.starts_with(name)),
                "{name} in {out}"
            );
        }
    }
}
