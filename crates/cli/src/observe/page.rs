//! The health page without its socket: from a request's head to an answer.
//!
//! **Invariant:** pure; four paths, GET and HEAD only, everything else is told so. 200 means yes,
//! 503 means no and the body says why.

use super::{HealthSource, process};
use std::fmt::Write as _;

/// Longest request head taken.
pub(super) const HEAD_BYTES_MAX: usize = 8 * 1024;

/// What is running.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// Not yet: it reads its data, and this is how far it has come.
    Starting(&'a str),
    /// This.
    Running(&'a dyn HealthSource),
    /// It was asked to stop.
    Stopping(&'a dyn HealthSource),
}

/// Whether `head` holds the whole request head.
pub(super) fn is_complete(head: &[u8]) -> bool {
    head.windows(4).any(|w| w == b"\r\n\r\n") || head.windows(2).any(|w| w == b"\n\n")
}

/// The bytes of the answer.
pub(super) fn answer(head: &[u8], role: &str, part: Part<'_>) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let path = target.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/livez") => verdict(live(part)),
        ("GET" | "HEAD", "/readyz") => verdict(ready(part)),
        ("GET" | "HEAD", "/startupz") => verdict(startup(part)),
        ("GET" | "HEAD", "/metrics") => ("200 OK", metrics(role, part)),
        ("GET" | "HEAD", _) => (
            "404 Not Found",
            "here are /metrics /livez /readyz /startupz\n".to_owned(),
        ),
        _ if words
            .next()
            .is_some_and(|version| version.starts_with("HTTP/")) =>
        {
            ("405 Method Not Allowed", "only GET\n".to_owned())
        }
        _ => ("400 Bad Request", "not HTTP\n".to_owned()),
    };
    let mut out = String::new();
    let _ = write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if method != "HEAD" {
        out.push_str(&body);
    }
    out.into_bytes()
}

fn live(part: Part<'_>) -> Result<(), String> {
    match part {
        // Long recovery is no reason to start again.
        Part::Starting(_) => Ok(()),
        Part::Running(source) | Part::Stopping(source) => source.live(),
    }
}

fn ready(part: Part<'_>) -> Result<(), String> {
    match part {
        Part::Starting(state) => Err(state.to_owned()),
        Part::Running(source) => source.ready(),
        Part::Stopping(_) => Err("stopping".to_owned()),
    }
}

fn startup(part: Part<'_>) -> Result<(), String> {
    match part {
        Part::Starting(state) => Err(state.to_owned()),
        Part::Running(source) | Part::Stopping(source) => source.startup(),
    }
}

fn verdict(result: Result<(), String>) -> (&'static str, String) {
    match result {
        Ok(()) => ("200 OK", "ok\n".to_owned()),
        Err(reason) => ("503 Service Unavailable", format!("{reason}\n")),
    }
}

fn metrics(role: &str, part: Part<'_>) -> String {
    let mut out = String::new();
    process::metrics(role, &mut out);
    let up = u8::from(ready(part).is_ok());
    let _ = writeln!(
        out,
        "# TYPE rocketmq_ready gauge\nrocketmq_ready{{role=\"{role}\"}} {up}"
    );
    if let Part::Running(source) | Part::Stopping(source) = part {
        source.metrics(&mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake(Result<(), String>);

    impl HealthSource for Fake {
        fn live(&self) -> Result<(), String> {
            Ok(())
        }
        fn ready(&self) -> Result<(), String> {
            self.0.clone()
        }
        fn metrics(&self, out: &mut String) {
            out.push_str("fake 1\n");
        }
    }

    fn ask(request: &str, part: Part<'_>) -> String {
        String::from_utf8(answer(request.as_bytes(), "test", part)).unwrap()
    }

    fn get(path: &str, part: Part<'_>) -> String {
        let text = ask(&format!("GET {path} HTTP/1.1\r\n\r\n"), part);
        text.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    #[test]
    fn each_stage_of_a_life_has_its_answers() {
        let (sound, lame) = (Fake(Ok(())), Fake(Err("not registered".to_owned())));
        for (part, live, ready, startup) in [
            (Part::Starting("starting"), "200", "503", "503"),
            (Part::Running(&sound), "200", "200", "200"),
            (Part::Running(&lame), "200", "503", "200"),
            (Part::Stopping(&sound), "200", "503", "200"),
        ] {
            assert_eq!(get("/livez", part), live);
            assert_eq!(get("/readyz", part), ready);
            assert_eq!(get("/startupz", part), startup);
        }
        assert!(
            ask("GET /readyz HTTP/1.1\r\n\r\n", Part::Running(&lame)).ends_with("not registered\n")
        );
    }

    #[test]
    fn metrics_hold_the_figures_of_the_part_and_of_the_process() {
        let text = ask(
            "GET /metrics?x=1 HTTP/1.1\r\n\r\n",
            Part::Running(&Fake(Ok(()))),
        );
        assert!(text.contains("\nfake 1\n") && text.contains("rocketmq_ready{role=\"test\"} 1\n"));
        let text = ask("GET /metrics HTTP/1.1\r\n\r\n", Part::Starting("starting"));
        assert!(text.contains("rocketmq_ready{role=\"test\"} 0\n"));
    }

    #[test]
    fn anything_else_is_refused() {
        let code = |request| {
            ask(request, Part::Starting("starting"))
                .split(' ')
                .nth(1)
                .map(str::to_owned)
        };
        assert_eq!(code("GET / HTTP/1.1\r\n\r\n").as_deref(), Some("404"));
        assert_eq!(code("POST /livez HTTP/1.1\r\n\r\n").as_deref(), Some("405"));
        assert_eq!(code("\u{0}\u{1}").as_deref(), Some("400"));
        assert_eq!(code("").as_deref(), Some("400"));
    }

    #[test]
    fn head_gets_no_body() {
        assert!(
            ask("HEAD /livez HTTP/1.1\r\n\r\n", Part::Starting("starting")).ends_with("\r\n\r\n")
        );
    }
}
