//! A toy service and a raw peer for the tests of listeners and clients.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test file uses a part of this module"
)]

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use rmq_net::{Connection, IoThreads, ListenOptions, Listener, Outbox, Request, Service};
use rmq_protocol::remoting::{Command, Serializer, Split, split_frame};

/// Answers with the request's body.
pub const ECHO: i32 = 1;
/// Answers with as many bytes as the field `n` says.
pub const LARGE: i32 = 2;
/// Panics.
pub const PANIC: i32 = 3;
/// Keeps the request: answered by `Toy::answer_kept`.
pub const KEEP: i32 = 4;
/// Never answered.
pub const IGNORE: i32 = 5;

/// Test guard only: no test depends on how long this is.
pub const LONG: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Toy {
    pub served: AtomicUsize,
    pub groups: Mutex<Vec<usize>>,
    pub kept: Mutex<Vec<(Arc<Connection>, i32)>>,
    pub open: Mutex<HashMap<u64, Arc<Connection>>>,
    pub closed: AtomicUsize,
}

impl Service for Toy {
    fn serve(&self, conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox) {
        self.groups.lock().unwrap().push(requests.len());
        for (index, request) in requests.iter().enumerate() {
            if index > 0 && out.is_full() {
                out.leave(requests.len() - index);
                return;
            }
            self.served.fetch_add(1, Ordering::SeqCst);
            let opaque = request.header.opaque;
            match request.header.code {
                PANIC => panic!("asked to"),
                KEEP => self.kept.lock().unwrap().push((Arc::clone(conn), opaque)),
                IGNORE => {}
                LARGE => {
                    let n: usize = request.header.ext.get("n").unwrap().parse().unwrap();
                    out.send(&Command::success(opaque).with_body(vec![b'x'; n]));
                }
                _ if request.wants_reply() => {
                    out.send(&Command::success(opaque).with_body(request.body.to_vec()));
                }
                _ => {}
            }
        }
    }

    fn opened(&self, conn: &Arc<Connection>) {
        self.open
            .lock()
            .unwrap()
            .insert(conn.id().0, Arc::clone(conn));
    }

    fn closed(&self, conn: &Arc<Connection>) {
        self.open.lock().unwrap().remove(&conn.id().0);
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

impl Toy {
    pub fn answer_kept(&self) -> usize {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap());
        for (conn, opaque) in &kept {
            conn.send(&Command::success(*opaque).with_body("kept"))
                .unwrap();
        }
        kept.len()
    }

    pub fn any_connection(&self) -> Option<Arc<Connection>> {
        self.open.lock().unwrap().values().next().cloned()
    }
}

pub struct Server {
    pub toy: Arc<Toy>,
    pub listener: Listener,
    pub io: IoThreads,
}

impl Server {
    pub fn start() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut ListenOptions)) -> Self {
        let io = IoThreads::start(2, "test-io").unwrap();
        let toy = Arc::new(Toy::default());
        let mut options = ListenOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        change(&mut options);
        let listener = Listener::bind(&io, options, Arc::clone(&toy) as Arc<dyn Service>).unwrap();
        Self { toy, listener, io }
    }

    pub fn addr(&self) -> String {
        self.listener.local_addr().to_string()
    }

    pub fn peer(&self) -> Peer {
        Peer::connect(self.listener.local_addr())
    }
}

/// A blocking peer that speaks raw bytes.
pub struct Peer {
    pub stream: TcpStream,
    unread: BytesMut,
}

impl Peer {
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            unread: BytesMut::new(),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn send(&mut self, cmd: &Command) {
        let bytes = frame(cmd);
        self.write(&bytes);
    }

    /// The next frame; `None` at the end of the stream or a reset.
    pub fn receive(&mut self) -> Option<Command> {
        loop {
            if let Split::Frame { frame, consumed } = split_frame(&self.unread, usize::MAX).unwrap()
            {
                let cmd = Command::decode(frame).unwrap();
                let _ = self.unread.split_to(consumed);
                return Some(cmd);
            }
            let mut chunk = vec![0; 65_536];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer and no end: {error}"),
            }
        }
    }

    pub fn call(&mut self, cmd: &Command) -> Option<Command> {
        self.send(cmd);
        self.receive()
    }

    pub fn assert_works(&mut self) {
        let request = Command::request(ECHO).with_body("alive");
        let answer = self.call(&request).expect("an answer");
        assert_eq!(
            (answer.opaque, &answer.body[..]),
            (request.opaque, &b"alive"[..])
        );
    }
}

pub fn frame(cmd: &Command) -> BytesMut {
    let mut bytes = BytesMut::new();
    cmd.encode(Serializer::Json, &mut bytes);
    bytes
}

/// Waits for a condition without a sleep.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "never came: {what}");
        std::thread::yield_now();
    }
}

pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
