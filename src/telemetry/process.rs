//! Resource use of this process, under the standard Prometheus names.

use prometheus_client::registry::Registry;

#[cfg(target_os = "linux")]
pub(super) use linux::ProcessMetrics;

/// Not implemented outside Linux.
#[cfg(not(target_os = "linux"))]
#[derive(Debug, Default)]
pub(super) struct ProcessMetrics;

#[cfg(not(target_os = "linux"))]
impl ProcessMetrics {
    pub(super) fn register(&self, _registry: &mut Registry) {}

    pub(super) fn update(&self) {}
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::{AtomicU64, Ordering};

    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;
    use rustix::process::{Resource, getrlimit};

    use super::Registry;

    #[derive(Debug, Default)]
    pub(crate) struct ProcessMetrics {
        cpu_seconds: Counter<f64, AtomicU64>,
        resident_bytes: Gauge,
        virtual_bytes: Gauge,
        threads: Gauge,
        open_fds: Gauge,
        max_fds: Gauge,
        start_time: Gauge<f64, AtomicU64>,
    }

    impl ProcessMetrics {
        pub(crate) fn register(&self, r: &mut Registry) {
            r.register(
                "process_cpu_seconds",
                "CPU time of this process, without executed programs",
                self.cpu_seconds.clone(),
            );
            let gauges = [
                (
                    "process_resident_memory_bytes",
                    "Memory of this process, without sandboxes",
                    &self.resident_bytes,
                ),
                (
                    "process_virtual_memory_bytes",
                    "Virtual memory of this process",
                    &self.virtual_bytes,
                ),
                ("process_threads", "Threads of this process", &self.threads),
                (
                    "process_open_fds",
                    "Open file descriptors of this process",
                    &self.open_fds,
                ),
                (
                    "process_max_fds",
                    "Maximum number of open file descriptors",
                    &self.max_fds,
                ),
            ];
            for (name, help, gauge) in gauges {
                r.register(name, help, gauge.clone());
            }
            r.register(
                "process_start_time_seconds",
                "Start time of this process, as Unix time",
                self.start_time.clone(),
            );
        }

        /// A value that cannot be read stays unchanged.
        pub(crate) fn update(&self) {
            if let Some(stat_now) = ProcStat::now() {
                self.cpu_seconds
                    .inner()
                    .store(stat_now.cpu_seconds.to_bits(), Ordering::Relaxed);
                self.resident_bytes.set(stat_now.resident_bytes);
                self.virtual_bytes.set(stat_now.virtual_bytes);
                self.threads.set(stat_now.threads);
                self.start_time.set(stat_now.start_time);
            }
            if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
                // Without the descriptor of this listing.
                self.open_fds
                    .set(i64::try_from(open.count()).unwrap_or(i64::MAX) - 1);
            }
            let most = getrlimit(Resource::Nofile).current;
            self.max_fds
                .set(most.and_then(|most| i64::try_from(most).ok()).unwrap_or(i64::MAX));
        }
    }

    struct ProcStat {
        cpu_seconds: f64,
        resident_bytes: i64,
        virtual_bytes: i64,
        threads: i64,
        start_time: f64,
    }

    impl ProcStat {
        fn now() -> Option<Self> {
            let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
            let system = std::fs::read_to_string("/proc/stat").ok()?;
            let booted = system.lines().find_map(|line| line.strip_prefix("btime "))?;
            // After the name, which may contain anything. The first field here is field 3 of proc(5).
            let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
            let field = |number: usize| fields.get(number - 3)?.trim().parse::<i64>().ok();
            let pages = i64::try_from(rustix::param::page_size()).ok()?;
            let seconds = |ticks: i64| {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "ticks since the host started, a hundred in a second"
                )]
                let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
                seconds
            };
            Some(Self {
                cpu_seconds: seconds(field(14)? + field(15)?),
                threads: field(20)?,
                start_time: booted.trim().parse::<f64>().ok()? + seconds(field(22)?),
                virtual_bytes: field(23)?,
                resident_bytes: field(24)? * pages,
            })
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn reads_process_statistics() {
            let stat_now = ProcStat::now().unwrap();
            assert!(stat_now.resident_bytes > 1 << 20 && stat_now.virtual_bytes > stat_now.resident_bytes);
            assert!(stat_now.threads >= 1 && stat_now.cpu_seconds >= 0.0);
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let age = now.unwrap().as_secs_f64() - stat_now.start_time;
            assert!((-2.0..86_400.0).contains(&age), "{age}");
        }
    }
}
