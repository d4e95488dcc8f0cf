//! What the floor broker answers: the least that each workload of the generator can be served with.
//!
//! | request | work |
//! |---|---|
//! | send, and whatever else | checksum and copy the body, answer |
//! | pull | read two numbers of the header, copy prepared records out |
//! | pull that may wait | keep its number until that message is sent, then copy it out |
//! | route | copy a prepared route out |
//!
//! All sends count as one queue. Invariant: nothing is looked up, stored for later reading or checked.
//! It does no IO but the log's.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use rmq_protocol::body::{BrokerData, QueueData, TopicRouteData};
use rmq_protocol::message::record::Record;
use rmq_protocol::remoting::{RawFrame, request_code};

use crate::floor_log::FloorLog;
use crate::reply::Reply;

const SENT: &str = "\"MSG_REGION\":\"DefaultRegion\",\"msgId\":\"7F00000100002A9F0000000000000000\",\
\"queueId\":\"0\",\"queueOffset\":\"0\",\"TRACE_ON\":\"true\"";
/// Polls kept until the next send; the generator has one.
const HELD_MAX: usize = 1024;
/// Bit of a pull's system flag: it may wait.
const MAY_WAIT: i64 = 2;
/// Where the body begins in a record with IPv4 hosts.
const BODY_AT: usize = 88;

/// A pull that waits for the next send.
#[derive(Clone, Copy, Debug)]
struct Held {
    conn: usize,
    opaque: i32,
    offset: i64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) log: FloorLog,
    checksum: u32,
    /// Messages sent: the end of the queue.
    sent: i64,
    shelf: Shelf,
    /// For pulls that wait: a single record.
    single: Shelf,
    route: Vec<u8>,
    held: Vec<Held>,
    /// Answers to pulls that waited: connection and frame.
    arrivals: Vec<(usize, Vec<u8>)>,
}

impl Desk {
    /// `size` is the body of one prepared record; their area is made with the first pull.
    pub(crate) fn new(log: FloorLog, size: usize, area: usize) -> Self {
        Self {
            log,
            checksum: 0,
            sent: 0,
            shelf: Shelf::new(size, area),
            single: Shelf::new(size, 0),
            route: route(),
            held: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    /// Answers one request of connection `conn` into `out`.
    pub(crate) fn answer(
        &mut self,
        conn: usize,
        frame: RawFrame<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let request = Reply::scan(frame).ok_or_else(|| io::Error::other("no opaque"))?;
        let opaque = request.opaque;
        match request.code {
            request_code::PULL_MESSAGE => self.pull(conn, &request, out),
            request_code::GET_ROUTEINFO_BY_TOPIC => write(out, opaque, "", &[&self.route]),
            request_code::GET_MAX_OFFSET => {
                let end = format!("\"offset\":\"{}\"", self.sent);
                write(out, opaque, &end, &[]);
            }
            _ => {
                self.sent += 1;
                self.checksum ^= crc32fast::hash(frame.body);
                self.log.append(frame.body);
                write(out, opaque, SENT, &[]);
                self.wake(frame.body);
            }
        }
        Ok(())
    }

    fn pull(&mut self, conn: usize, request: &Reply<'_>, out: &mut Vec<u8>) {
        let offset = request.field(b"\"queueOffset\":").unwrap_or(0);
        let may_wait = request.field(b"\"sysFlag\":").unwrap_or(0) & MAY_WAIT != 0;
        if may_wait && offset >= self.sent && self.held.len() < HELD_MAX {
            self.held.push(Held {
                conn,
                opaque: request.opaque,
                offset,
            });
            return;
        }
        let wanted = request.field(b"\"maxMsgNums\":").unwrap_or(1);
        let shelf = if may_wait {
            &mut self.single
        } else {
            &mut self.shelf
        };
        let (records, count) = shelf.take(offset, wanted.clamp(1, 1024) as usize);
        found(out, request.opaque, offset + count as i64, &[records]);
    }

    /// Answers every pull that waits with one record that holds `body`.
    fn wake(&mut self, body: &[u8]) {
        let size = self.single.size;
        for held in self.held.drain(..) {
            let (record, _) = self.single.take(held.offset, 1);
            let end = BODY_AT + body.len();
            let parts = match (record.get(..BODY_AT), record.get(end..)) {
                (Some(head), Some(tail)) if body.len() == size => [head, body, tail],
                _ => [record, &[], &[]],
            };
            let mut frame = Vec::with_capacity(512 + record.len());
            found(&mut frame, held.opaque, held.offset + 1, &parts);
            self.arrivals.push((held.conn, frame));
        }
    }

    /// Answers to pulls that waited, each with its connection.
    pub(crate) fn take_arrivals(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.arrivals)
    }

    /// Forgets what a closed connection waits for.
    pub(crate) fn forget(&mut self, conn: usize) {
        self.held.retain(|held| held.conn != conn);
    }
}

/// Prepared records of one size, one behind the other.
#[derive(Debug)]
struct Shelf {
    size: usize,
    area: usize,
    each: usize,
    records: Vec<u8>,
}

impl Shelf {
    fn new(size: usize, area: usize) -> Self {
        Self {
            size,
            area,
            each: 0,
            records: Vec::new(),
        }
    }

    /// `count` records from `offset` on, or fewer at the end of the area, where it starts over.
    fn take(&mut self, offset: i64, count: usize) -> (&[u8], usize) {
        if self.records.is_empty() {
            self.fill();
        }
        let total = self.records.len() / self.each.max(1);
        let first = offset.max(0) as usize % total.max(1);
        let count = count.min(total - first);
        let part = first * self.each..(first + count) * self.each;
        (self.records.get(part).unwrap_or_default(), count)
    }

    fn fill(&mut self) {
        let host = SocketAddr::from(([127, 0, 0, 1], 10911));
        let body = vec![b'f'; self.size];
        let record = Record {
            body_crc: rmq_protocol::message::body_crc(&body),
            queue_id: 0,
            flag: 0,
            queue_offset: 0,
            physical_offset: 0,
            sys_flag: 0,
            born_at: 0,
            born_host: host,
            stored_at: 0,
            store_host: host,
            reconsume_times: 0,
            prepared_transaction_offset: 0,
            body: &body,
            topic: "bench",
            properties: b"UNIQ_KEY\x017F00000100010000000000000000ABCD\x02WAIT\x01true\x02\
                TAGS\x01TagA\x02",
        };
        self.each = record.encoded_len();
        let total = (self.area / self.each).max(1);
        self.records = vec![0; total * self.each];
        for room in self.records.chunks_exact_mut(self.each) {
            // Its length is the record's own.
            let _ = record.encode_into(room);
        }
    }
}

/// What a NameServer answers about a topic of one broker.
fn route() -> Vec<u8> {
    let data = TopicRouteData {
        broker_datas: vec![BrokerData {
            broker_addrs: BTreeMap::from([(0, "127.0.0.1:10911".to_owned())]),
            broker_name: "bench-broker".to_owned(),
            cluster: "bench-cluster".to_owned(),
            ..BrokerData::default()
        }],
        queue_datas: vec![QueueData {
            broker_name: "bench-broker".to_owned(),
            perm: 6,
            read_queue_nums: 8,
            write_queue_nums: 8,
            ..QueueData::default()
        }],
        ..TopicRouteData::default()
    };
    data.to_json()
}

fn found(out: &mut Vec<u8>, opaque: i32, next: i64, records: &[&[u8]]) {
    let fields = format!(
        "\"maxOffset\":\"1000000000\",\"minOffset\":\"0\",\"nextBeginOffset\":\"{next}\",\
         \"suggestWhichBrokerId\":\"0\""
    );
    write(out, opaque, &fields, records);
}

/// Appends a frame of success.
fn write(out: &mut Vec<u8>, opaque: i32, fields: &str, body: &[&[u8]]) {
    let mut digits = [0; 10];
    let header = [
        &b"{\"code\":0,\"extFields\":{"[..],
        fields.as_bytes(),
        b"},\"flag\":1,\"language\":\"JAVA\",\"opaque\":",
        decimal(opaque.unsigned_abs(), &mut digits),
        b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}",
    ];
    let header_bytes: usize = header.iter().map(|part| part.len()).sum();
    let body_bytes: usize = body.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&((4 + header_bytes + body_bytes) as u32).to_be_bytes());
    out.extend_from_slice(&(header_bytes as u32).to_be_bytes());
    for part in header.iter().chain(body) {
        out.extend_from_slice(part);
    }
}

/// A number in decimal digits.
fn decimal(mut value: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut first = digits.len() - 1;
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        first = index;
        if value == 0 {
            break;
        }
    }
    digits.get(first..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_leading_zeros() {
        let mut digits = [0; 10];
        assert_eq!(decimal(0, &mut digits), b"0");
        assert_eq!(decimal(907, &mut digits), b"907");
        assert_eq!(decimal(u32::MAX, &mut digits), b"4294967295");
    }

    #[test]
    fn the_shelf_gives_whole_records_and_starts_over_at_its_end() {
        let mut shelf = Shelf::new(100, 10 * 300);
        let (records, count) = shelf.take(0, 4);
        let (first, each) = Record::decode(records).unwrap();
        assert_eq!((first.body.len(), records.len()), (100, 4 * each));
        assert_eq!((count, first.verify_body()), (4, Ok(())));
        let total = shelf.records.len() / shelf.each;
        assert_eq!(shelf.take(total as i64 - 1, 4).1, 1);
        assert_eq!(shelf.take(total as i64, 4).1, 4);
        assert_eq!(shelf.take(-1, 1).1, 1);
    }

    #[test]
    fn the_prepared_route_reads_as_a_route() {
        let route = TopicRouteData::from_json(&route()).unwrap();
        assert_eq!(route.queue_datas[0].read_queue_nums, 8);
        assert_eq!(route.broker_datas[0].broker_addrs[&0], "127.0.0.1:10911");
    }
}
