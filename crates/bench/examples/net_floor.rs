//! The floor broker's work behind rmq-net: what the network layer costs beside a bare event loop.
//!
//! Run it with an address, a number of io threads, and `later` to answer from another thread.

use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use bytes::BytesMut;
use rmq_net::{Connection, IoThreads, ListenOptions, Listener, Outbox, Request, Service};
use rmq_protocol::remoting::ResponseWriter;

type Later = mpsc::SyncSender<(Arc<Connection>, i32)>;

struct Floor {
    area: Mutex<(Vec<u8>, usize)>,
    later: Option<Later>,
}

fn answer(opaque: i32, out: &mut BytesMut) {
    let mut writer = ResponseWriter::new(out, opaque, 0);
    writer
        .text("MSG_REGION", "DefaultRegion")
        .text("msgId", "7F00000100002A9F0000000000000000")
        .number("queueId", 0)
        .number("queueOffset", 0)
        .text("TRACE_ON", "true");
    writer.finish(None, []);
}

impl Service for Floor {
    fn serve(&self, conn: &Arc<Connection>, requests: &[Request<'_>], out: &mut Outbox) {
        let mut checksum = 0;
        for request in requests {
            checksum ^= crc32fast::hash(request.body);
            let mut guard = self.area.lock().unwrap_or_else(PoisonError::into_inner);
            let (area, at) = &mut *guard;
            if *at + request.body.len() > area.len() {
                *at = 0;
            }
            if let Some(room) = area.get_mut(*at..*at + request.body.len()) {
                room.copy_from_slice(request.body);
                *at += request.body.len();
            }
            drop(guard);
            match &self.later {
                Some(later) => drop(later.send((Arc::clone(conn), request.header.opaque))),
                None => answer(request.header.opaque, out.buffer()),
            }
        }
        std::hint::black_box(checksum);
    }
}

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let addr: SocketAddr = args
        .next()
        .as_deref()
        .unwrap_or("127.0.0.1:10931")
        .parse()?;
    let threads = args.next().as_deref().unwrap_or("1").parse()?;
    let later = args.next().is_some_and(|word| word == "later").then(|| {
        let (sender, receiver) = mpsc::sync_channel::<(Arc<Connection>, i32)>(65_536);
        std::thread::spawn(move || {
            while let Ok((conn, opaque)) = receiver.recv() {
                let mut frame = BytesMut::new();
                answer(opaque, &mut frame);
                // A peer that left needs no answer.
                let _ = conn.send_frame(&frame);
            }
        });
        sender
    });
    let io = IoThreads::start(threads, "io")?;
    let floor = Floor {
        area: Mutex::new((vec![1; 256 * 1024 * 1024], 0)),
        later,
    };
    let listener = Listener::bind(&io, ListenOptions::new(addr), Arc::new(floor))?;
    writeln!(stdout(), "listens on {}", listener.local_addr())?;
    loop {
        std::thread::park();
    }
}
