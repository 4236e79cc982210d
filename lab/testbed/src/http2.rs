//! HTTP/2 frame by frame (RFC 9113), for requests that no proper client sends and frames that it would hide:
//! settings, resets, GOAWAY.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Type of the frame with bytes of a body.
pub const DATA: u8 = 0;
/// Type of the frame that begins a request or a response.
pub const HEADERS: u8 = 1;
/// Type of the frame that ends a stream with an error code.
pub const RST_STREAM: u8 = 3;
/// Type of the frame with the settings of a connection.
pub const SETTINGS: u8 = 4;
/// Type of the frame after which no new stream is served.
pub const GOAWAY: u8 = 7;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

/// The greatest flow-control window.
const MAX_WINDOW: u32 = (1 << 31) - 1;
/// The window of a connection before its first update.
const FIRST_WINDOW: u32 = 65_535;
/// The payload of SETTINGS in which every stream gets the greatest window.
const WIDE_STREAMS: [u8; 6] = [0, 4, 0x7f, 0xff, 0xff, 0xff];

/// The flag of the last frame of a request or a response, which may be its head.
pub const END_STREAM: u8 = 1;
/// Flags: END_STREAM with END_HEADERS; ACK.
const END_STREAM_AND_HEADERS: u8 = 5;
const ACK: u8 = 1;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// HPACK names of fields: indices into the static table.
pub const AUTHORITY: &[u8] = b"\x01";
/// The name `accept`.
pub const ACCEPT: &[u8] = b"\x0f\x04";
const PATH: &[u8] = b"\x04";
/// `:method: GET` and `:scheme: http`, by HPACK's static table.
const GET: &[u8] = b"\x82\x86";

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream, 0 for the connection.
    pub stream: u32,
    /// Its content, less than 16 MiB.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A request without a body.
    pub fn request(stream: u32, block: &[u8]) -> Self {
        Self { kind: HEADERS, flags: END_STREAM_AND_HEADERS, stream, payload: block.to_vec() }
    }

    /// Cancels a request (RST_STREAM with CANCEL).
    fn cancel(stream: u32) -> Self {
        Self { kind: RST_STREAM, flags: 0, stream, payload: vec![0, 0, 0, 8] }
    }

    fn encode(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap_or_default().to_be_bytes();
        [&length[1..], &[self.kind, self.flags], &self.stream.to_be_bytes(), &self.payload].concat()
    }

    async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut head = [0; 9];
        from.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let (length, stream) = (u32::from_be_bytes([0, a, b, c]), u32::from_be_bytes(stream));
        let mut payload = vec![0; length as usize];
        from.read_exact(&mut payload).await?;
        Ok(Self { kind, flags, stream, payload })
    }
}

/// A header block of `GET` and `http` with this path and these fields: names (an index into HPACK's static
/// table, or a literal) and values of at most 127 bytes.
pub fn get_request(path: &str, fields: &[(&[u8], &str)]) -> Vec<u8> {
    let mut block = GET.to_vec();
    for (name, value) in [(PATH, path)].iter().chain(fields) {
        block.extend_from_slice(name);
        block.push(u8::try_from(value.len()).unwrap_or_default());
        block.extend_from_slice(value.as_bytes());
    }
    block
}

/// A client's connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects to the server of a URL without a path.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn open(url: &str) -> io::Result<Self> {
        Self::over(TcpStream::connect(url.trim_start_matches("http://")).await?, &[]).await
    }

    /// Begins HTTP/2 on an open connection, with the payload of a SETTINGS frame.
    ///
    /// # Errors
    /// When the server has closed.
    pub async fn over(mut stream: TcpStream, settings: &[u8]) -> io::Result<Self> {
        stream.write_all(PREFACE).await?;
        let mut connection = Self { stream };
        connection.send(&Frame { kind: SETTINGS, flags: 0, stream: 0, payload: settings.to_vec() }).await?;
        Ok(connection)
    }

    /// Begins HTTP/2 on an open connection whose flow control never holds the server back, unless it sends
    /// two gigabytes.
    ///
    /// # Errors
    /// When the server has closed.
    pub async fn wide(stream: TcpStream) -> io::Result<Self> {
        let mut connection = Self::over(stream, &WIDE_STREAMS).await?;
        let payload = (MAX_WINDOW - FIRST_WINDOW).to_be_bytes().to_vec();
        connection.send(&Frame { kind: WINDOW_UPDATE, flags: 0, stream: 0, payload }).await?;
        Ok(connection)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// When the server has closed.
    pub async fn send(&mut self, frame: &Frame) -> io::Result<()> {
        self.stream.write_all(&frame.encode()).await
    }

    /// The next frame.
    ///
    /// # Errors
    /// When the server has closed, or the connection breaks.
    pub async fn frame(&mut self) -> io::Result<Frame> {
        Frame::read(&mut self.stream).await
    }

    /// The next frame of a type; answers pings and skips other frames.
    ///
    /// # Errors
    /// As [`Self::frame`].
    pub async fn next(&mut self, kind: u8) -> io::Result<Frame> {
        loop {
            let frame = self.frame_after_pings().await?;
            if frame.kind == kind {
                return Ok(frame);
            }
        }
    }

    /// The next frame that is no ping to be answered; those are.
    ///
    /// # Errors
    /// As [`Self::frame`].
    pub async fn frame_after_pings(&mut self) -> io::Result<Frame> {
        loop {
            let frame = self.frame().await?;
            if frame.kind != PING || frame.flags & ACK != 0 {
                return Ok(frame);
            }
            // Fails when the server has closed; frames that it sent before can still be read.
            let _ = self.send(&Frame { flags: ACK, ..frame }).await;
        }
    }

    /// Sends requests and cancels each at once, and then one more. Returns the head of its answer, or the server's GOAWAY.
    ///
    /// # Errors
    /// When the server closes without either.
    pub async fn cancel_requests(&mut self, count: u32, block: &[u8]) -> io::Result<Frame> {
        let last = 2 * count + 1;
        let streams = (1..last).step_by(2);
        let frames = streams.flat_map(|stream| [Frame::request(stream, block), Frame::cancel(stream)]);
        let frames = frames.chain([Frame::request(last, block)]);
        let bytes: Vec<u8> = frames.flat_map(|frame| frame.encode()).collect();
        let (mut reading, mut writing) = self.stream.split();
        let ended = async {
            loop {
                let frame = Frame::read(&mut reading).await?;
                if frame.kind == GOAWAY || frame.kind == HEADERS && frame.stream == last {
                    return Ok(frame);
                }
            }
        };
        // A write error is expected: the server need not read all of them.
        let (ended, _) = tokio::join!(ended, writing.write_all(&bytes));
        ended
    }
}
