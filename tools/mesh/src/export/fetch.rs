//! The download itself: asks, writes, and asks again from where it is until the file is whole and its
//! checksum right.

use std::{cell::RefCell, path::PathBuf, time::Duration};

use proto_msgs::v2::HistorySegment;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::{
    progress::{PERIOD, Progress, size},
    retry::RetryPolicy,
    sink::{PartState, Paths, Sink},
    source::{Answer, FetchError, FileInfo, Request, Source},
};
use crate::failure::Failure;

/// What would be left if it ended now, for whoever has to say so.
#[derive(Debug, Default)]
pub(super) struct PartialDownload(RefCell<Option<(PathBuf, u64, u64)>>);

/// A whole file.
#[derive(Debug)]
pub(super) struct Downloaded {
    /// Where it lies, unless it went to standard output.
    pub(super) file: Option<PathBuf>,
    /// What it is.
    pub(super) info: FileInfo,
    /// Bytes that an earlier call had left.
    pub(super) resumed_from: u64,
}

/// One download.
#[derive(Debug)]
pub(super) struct Fetch<'a> {
    source: &'a Source,
    retry: RetryPolicy,
    progress: Progress,
    kept: &'a PartialDownload,
}

impl PartialDownload {
    /// A failure, and what is left to go on from.
    pub(super) fn add_to(&self, failure: Failure) -> Failure {
        match &*self.0.borrow() {
            Some((part, position, bytes)) if *position > 0 => failure.and(&format!(
                "{} keeps {} of {}, and the same command goes on from there",
                part.display(),
                size(*position as f64),
                size(*bytes as f64)
            )),
            _ => failure,
        }
    }
}

impl<'a> Fetch<'a> {
    /// A download that gives up after so many failures in a row.
    pub(super) fn new(source: &'a Source, retries: u32, kept: &'a PartialDownload) -> Self {
        Self { source, retry: RetryPolicy::new(retries), progress: Progress::new(), kept }
    }

    /// The segments that are held.
    pub(super) async fn segments(&mut self) -> Result<Vec<HistorySegment>, Failure> {
        loop {
            match self.source.segments().await {
                Ok(segments) => return Ok(segments),
                Err(error_from) => self.wait(error_from).await?,
            }
        }
    }

    /// Brings the file to the place that belongs to the name offered; nothing is standard output.
    pub(super) async fn run(
        mut self,
        request: &Request,
        place: impl FnOnce(Option<&str>) -> Result<Option<Paths>, Failure>,
        may_replace: bool,
    ) -> Result<Downloaded, Failure> {
        let url = self.source.url(request);
        // Only the answer says what the file is called, and so whether there is a part of it.
        let first = self.ask(request, None).await?;
        let mut info = first.info.clone();
        let paths = place(info.name.as_deref())?;
        let mut sink = match &paths {
            None => Sink::out(),
            Some(paths) => self.open(paths, &info, &url).await?,
        };
        let resumed_from = sink.position;
        let mut answer = (resumed_from == 0).then_some(first);
        let mut was_wrong = false;
        loop {
            if sink.position == info.bytes {
                if sink.crc32c == info.crc32c {
                    break;
                }
                self.wrong(&mut sink, &info, &url, was_wrong)?;
                was_wrong = true;
            }
            let held = (sink.position > 0).then_some((sink.position, info.etag.as_str()));
            let mut got = match answer.take() {
                Some(answer) => answer,
                None => match self.source.file(request, held).await {
                    Ok(answer) => answer,
                    Err(FetchError::NoSuchPart) => {
                        self.restart(&mut sink, &info, &url, "the gateway has no such part of the file")?;
                        self.wait(FetchError::NoSuchPart).await?;
                        continue;
                    }
                    Err(error_from) => {
                        self.wait(error_from).await?;
                        continue;
                    }
                },
            };
            if got.info != info {
                info = got.info.clone();
                self.restart(&mut sink, &info, &url, "the file has changed at the gateway")?;
            } else if got.from_byte == 0 && sink.position > 0 {
                self.restart(&mut sink, &info, &url, "the gateway gives no parts of files")?;
            }
            if got.from_byte != sink.position {
                self.wait(FetchError::Passing { why: "another part came".to_owned(), wait: None }).await?;
                continue;
            }
            if let Err(why) = self.write_body(&mut got, &mut sink, &info).await? {
                self.wait(FetchError::Passing { why, wait: None }).await?;
            }
        }
        self.progress.leave();
        sink.finish(may_replace).await?;
        Ok(Downloaded { file: paths.map(|paths| paths.whole), info, resumed_from })
    }

    async fn ask(&mut self, request: &Request, held: Option<(u64, &str)>) -> Result<Answer, Failure> {
        loop {
            match self.source.file(request, held).await {
                Ok(answer) => return Ok(answer),
                Err(error_from) => self.wait(error_from).await?,
            }
        }
    }

    async fn open(&mut self, paths: &Paths, info: &FileInfo, url: &str) -> Result<Sink, Failure> {
        let (sink, found) = Sink::open(paths.clone(), info, url).await?;
        let (part, bytes) = (paths.part.clone(), info.bytes);
        match found {
            PartState::Nothing => {}
            PartState::Beginning => self.progress.note(&format!(
                "going on from {} of {} in {}",
                size(sink.position as f64),
                size(bytes as f64),
                part.display()
            )),
            PartState::Other => self.progress.note(&format!(
                "{} was part of another file, or of this one before it changed; starting again",
                part.display()
            )),
        }
        *self.kept.0.borrow_mut() = Some((part, sink.position, bytes));
        Ok(sink)
    }

    /// Writes what comes. Inside is why it ended before the end.
    async fn write_body(
        &mut self,
        answer: &mut Answer,
        sink: &mut Sink,
        info: &FileInfo,
    ) -> Result<Result<(), String>, Failure> {
        let patience = self.source.patience();
        let mut deadline = Instant::now() + patience;
        let mut look = interval(PERIOD);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let piece = tokio::select! {
                piece = answer.next() => piece,
                () = sleep_until(deadline) => Err(format!("nothing came for {} s", patience.as_secs())),
                _ = look.tick() => {
                    self.progress.show(sink.position, info.bytes);
                    continue;
                }
            };
            let piece = match piece {
                Ok(Some(piece)) => piece,
                Ok(None) if sink.position == info.bytes => return Ok(Ok(())),
                Ok(None) => return Ok(Err("the file ended early".to_owned())),
                Err(why) => return Ok(Err(why)),
            };
            let piece = piece.as_ref();
            if piece.len() as u64 > info.bytes - sink.position {
                return Ok(Err("more came than the file is long".to_owned()));
            }
            sink.write(piece).await?;
            self.reached(sink.position);
            deadline = Instant::now() + patience;
        }
    }

    fn reached(&mut self, position: u64) {
        self.retry.reached(position);
        if let Some((_, kept, _)) = &mut *self.kept.0.borrow_mut() {
            *kept = position;
        }
    }

    fn restart(&self, sink: &mut Sink, info: &FileInfo, url: &str, why: &str) -> Result<(), Failure> {
        if sink.position > 0 {
            self.progress.note(&format!("{why}; starting again"));
        }
        if let Some((_, kept, bytes)) = &mut *self.kept.0.borrow_mut() {
            (*kept, *bytes) = (0, info.bytes);
        }
        if sink.is_file() || sink.position > 0 { sink.restart(info, url) } else { Ok(()) }
    }

    /// The file is as long as it should be and something else.
    fn wrong(&self, sink: &mut Sink, info: &FileInfo, url: &str, is_second: bool) -> Result<(), Failure> {
        let figures = format!("its checksum is {:08x} instead of {:08x}", sink.crc32c, info.crc32c);
        if !sink.is_file() || is_second {
            if let Some((_, kept, _)) = &mut *self.kept.0.borrow_mut() {
                *kept = 0;
            }
            sink.remove();
            return Err(Failure::failed(format!(
                "the file came wrong ({figures}) and is not kept; try again, or another --url"
            )));
        }
        self.restart(sink, info, url, &format!("the file came wrong ({figures})"))
    }

    /// Pauses before the next try, or says that there is none.
    async fn wait(&mut self, error_from: FetchError) -> Result<(), Failure> {
        let (why, retry_after): (String, Option<Duration>) = match error_from {
            FetchError::Refused(why) => return Err(Failure::failed(why)),
            FetchError::NoSuchPart => ("no such part".to_owned(), None),
            FetchError::Passing { why, wait } => (why, wait),
        };
        let Some(pause) = self.retry.pause(retry_after) else {
            let most = self.retry.most();
            return Err(Failure::failed(format!(
                "gave up after {most} fruitless tries in a row ({why}); see that the gateway runs, or name it with --url"
            )));
        };
        self.progress.note(&format!("{why}; trying again in {:.1} s", pause.as_secs_f64()));
        sleep(pause).await;
        Ok(())
    }
}
