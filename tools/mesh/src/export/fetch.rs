//! The download loop: requests the file, writes it, and resumes from the bytes present until the file is
//! complete and its checksum is right.

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

/// The `.part` file with its present and final length, for the message of an interrupted download.
#[derive(Debug, Default)]
pub(super) struct PartialDownload(RefCell<Option<(PathBuf, u64, u64)>>);

/// A completed download.
#[derive(Debug)]
pub(super) struct Downloaded {
    /// The path of the file; `None` for standard output.
    pub(super) file: Option<PathBuf>,
    /// The gateway's description of the file.
    pub(super) info: FileInfo,
    /// Number of bytes that an earlier call had written.
    pub(super) resumed_from: u64,
}

/// One download.
#[derive(Debug)]
pub(super) struct Fetch<'a> {
    source: &'a Source,
    retry: RetryPolicy,
    progress: Progress,
    partial: &'a PartialDownload,
}

impl PartialDownload {
    /// Appends the path and length of the `.part` file to a failure.
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
    /// A download that gives up after `retries` failures in a row without progress.
    pub(super) fn new(source: &'a Source, retries: u32, partial: &'a PartialDownload) -> Self {
        Self { source, retry: RetryPolicy::new(retries), progress: Progress::new(), partial }
    }

    /// The sealed segments, with retries.
    pub(super) async fn segments(&mut self) -> Result<Vec<HistorySegment>, Failure> {
        loop {
            match self.source.segments().await {
                Ok(segments) => return Ok(segments),
                Err(error_from) => self.wait(error_from).await?,
            }
        }
    }

    /// Downloads the file. `paths_for` maps the gateway's file name to paths; `None` is standard output.
    pub(super) async fn run(
        mut self,
        request: &Request,
        paths_for: impl FnOnce(Option<&str>) -> Result<Option<Paths>, Failure>,
        may_replace: bool,
    ) -> Result<Downloaded, Failure> {
        let url = self.source.url(request);
        // The file name, and so whether there is a part of it, is known from the answer only.
        let first = self.ask(request, None).await?;
        let mut info = first.info.clone();
        let paths = paths_for(info.name.as_deref())?;
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
            let part_held = (sink.position > 0).then_some((sink.position, info.etag.as_str()));
            let mut got = match answer.take() {
                Some(answer) => answer,
                None => match self.source.file(request, part_held).await {
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

    async fn ask(&mut self, request: &Request, part_held: Option<(u64, &str)>) -> Result<Answer, Failure> {
        loop {
            match self.source.file(request, part_held).await {
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
        *self.partial.0.borrow_mut() = Some((part, sink.position, bytes));
        Ok(sink)
    }

    /// Writes the body. The inner error is the reason why it ended early, after which a retry makes sense.
    async fn write_body(
        &mut self,
        answer: &mut Answer,
        sink: &mut Sink,
        info: &FileInfo,
    ) -> Result<Result<(), String>, Failure> {
        let patience = self.source.patience();
        let mut deadline = Instant::now() + patience;
        let mut progress_tick = interval(PERIOD);
        progress_tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let piece = tokio::select! {
                piece = answer.next() => piece,
                () = sleep_until(deadline) => Err(format!("nothing came for {} s", patience.as_secs())),
                _ = progress_tick.tick() => {
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
        if let Some((_, length, _)) = &mut *self.partial.0.borrow_mut() {
            *length = position;
        }
    }

    fn restart(&self, sink: &mut Sink, info: &FileInfo, url: &str, why: &str) -> Result<(), Failure> {
        if sink.position > 0 {
            self.progress.note(&format!("{why}; starting again"));
        }
        if let Some((_, length, bytes)) = &mut *self.partial.0.borrow_mut() {
            (*length, *bytes) = (0, info.bytes);
        }
        if sink.is_file() || sink.position > 0 { sink.restart(info, url) } else { Ok(()) }
    }

    /// Handles a complete file with a wrong checksum: starts again, the second time fails.
    fn wrong(&self, sink: &mut Sink, info: &FileInfo, url: &str, is_second: bool) -> Result<(), Failure> {
        let figures = format!("its checksum is {:08x} instead of {:08x}", sink.crc32c, info.crc32c);
        if !sink.is_file() || is_second {
            if let Some((_, length, _)) = &mut *self.partial.0.borrow_mut() {
                *length = 0;
            }
            sink.remove();
            return Err(Failure::failed(format!(
                "the file came wrong ({figures}) and is not kept; try again, or another --url"
            )));
        }
        self.restart(sink, info, url, &format!("the file came wrong ({figures})"))
    }

    /// Pauses before the next try; fails when there is none left.
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
