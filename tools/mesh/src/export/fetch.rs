//! The download loop: requests the file, writes it, and resumes from the bytes present until the file is
//! complete and its checksum is right.

use std::{path::PathBuf, time::Duration};

use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};
use reqwest::StatusCode;
use tokio::time::sleep;

use super::{
    sink::{Csv, Paths, Sink},
    source::{self, Answer, FileInfo, Request, refused},
};
use crate::{
    failure::{Failure, failed},
    gateway::{Gateway, GatewayError},
    pause::Pauses,
    terminal::print_line,
};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Downloaded {
    /// The path of the file; `None` for standard output.
    pub(super) file: Option<PathBuf>,
    pub(super) info: FileInfo,
    /// Number of bytes that an earlier call had written.
    pub(super) resumed_from: u64,
}

#[derive(Debug)]
pub(super) struct Fetch {
    gateway: Gateway,
    retries: u32,
    pauses: Pauses,
    /// The largest number of bytes that any attempt has reached.
    furthest: u64,
    progress: ProgressBar,
    /// The `.part` file and the length of the complete file, once they are known.
    part: Option<(PathBuf, u64)>,
}

impl Fetch {
    /// A download that fails after `retries` consecutive failures without progress.
    pub(super) fn new(gateway: Gateway, retries: u32) -> Self {
        let pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        Self { gateway, retries, pauses, furthest: 0, progress: progress_bar(), part: None }
    }

    /// Appends the path and length of the `.part` file, if there is one, to a failure.
    pub(super) fn add_part_to(&self, failure: Failure) -> Failure {
        let Some((part, bytes)) = &self.part else { return failure };
        match std::fs::metadata(part).map_or(0, |found| found.len()) {
            0 => failure,
            whole if whole == *bytes => {
                failure.and(&format!("{} is complete; the next call does not load it again", part.display()))
            }
            position => failure.and(&format!(
                "{} has {} of {}; the same command resumes from there",
                part.display(),
                DecimalBytes(position),
                DecimalBytes(*bytes)
            )),
        }
    }

    pub(super) async fn spans(&mut self) -> Result<Vec<(u64, u64)>, Failure> {
        self.retried(async |gateway| source::spans(gateway).await).await
    }

    /// Downloads the file, and unpacks it into a CSV if there is one. `paths_for` maps the gateway's description to
    /// paths; `None` is standard output.
    pub(super) async fn run(
        &mut self,
        request: &Request,
        paths_for: impl FnOnce(&FileInfo) -> Result<Option<Paths>, Failure>,
        csv: Option<Csv>,
        may_replace: bool,
    ) -> Result<Downloaded, Failure> {
        // The file name, and so whether there is a part of it, is known from the answer only.
        let first = self.retried(async |gateway| source::file(gateway, request, None).await).await?;
        let mut info = first.info.clone();
        let paths = paths_for(&info)?;
        let mut sink = self.open(paths.as_ref(), &info).await?;
        let mut resumed_from = sink.position;
        let mut answer = (resumed_from == 0).then_some(first);
        let mut was_wrong = false;
        loop {
            if sink.position == info.bytes {
                if sink.crc32c == info.crc32c {
                    break;
                }
                self.wrong(&mut sink, &info, was_wrong)?;
                was_wrong = true;
            }
            // What was held is given up when the download starts over.
            resumed_from = resumed_from.min(sink.position);
            let part_held = (sink.position > 0).then_some((sink.position, info.etag.as_str()));
            let answered = match answer.take() {
                Some(answer) => Ok(answer),
                None => source::file(&self.gateway, request, part_held).await,
            };
            let incomplete = match answered {
                Ok(answer) => self.write(answer, &mut sink, &mut info).await?,
                Err(GatewayError::Status { status: StatusCode::RANGE_NOT_SATISFIABLE, .. })
                    if part_held.is_some() =>
                {
                    self.restart(&mut sink, &info, "the gateway has no such part of the file")?;
                    None
                }
                Err(error) => Some(error),
            };
            if let Some(error) = incomplete {
                self.wait(&error).await?;
            }
        }
        self.progress.finish_and_clear();
        match csv {
            Some(csv) => info.rows = Some(sink.unpack(csv, may_replace).await?),
            None => sink.finish(may_replace).await?,
        }
        Ok(Downloaded { file: paths.map(|paths| paths.whole), info, resumed_from })
    }

    /// Repeats a request until it succeeds, or no retry is left or can help.
    async fn retried<T>(
        &mut self,
        request: impl AsyncFn(&Gateway) -> Result<T, GatewayError>,
    ) -> Result<T, Failure> {
        loop {
            match request(&self.gateway).await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.wait(&error).await?,
            }
        }
    }

    async fn open(&mut self, paths: Option<&Paths>, info: &FileInfo) -> Result<Sink, Failure> {
        let Some(paths) = paths else { return Ok(Sink::out()) };
        let sink = Sink::open(paths.clone()).await?;
        if sink.position > 0 {
            let (done, all) = (DecimalBytes(sink.position), DecimalBytes(info.bytes));
            self.note(&format!("resuming at {done} of {all} in {}", paths.part.display()));
        }
        self.part = Some((paths.part.clone(), info.bytes));
        Ok(sink)
    }

    /// Writes the body of an answer. Returns why the file is incomplete, after which a retry makes sense.
    async fn write(
        &mut self,
        mut answer: Answer,
        sink: &mut Sink,
        info: &mut FileInfo,
    ) -> Result<Option<GatewayError>, Failure> {
        let incomplete = |why: &str| Ok(Some(GatewayError::broken(why)));
        if answer.info != *info {
            *info = answer.info.clone();
            self.restart(sink, info, "the file has changed at the gateway")?;
        } else if answer.from_byte == 0 && sink.position > 0 {
            self.restart(sink, info, "the gateway does not support ranges")?;
        }
        if answer.from_byte != sink.position {
            return incomplete("the gateway sent another range");
        }
        self.progress.set_length(info.bytes);
        loop {
            self.progress.set_position(sink.position);
            let piece = match self.gateway.next(&mut answer.response).await {
                Ok(Some(piece)) => piece,
                Ok(None) if sink.position == info.bytes => return Ok(None),
                Ok(None) => return incomplete("the file ended early"),
                Err(error) => return Ok(Some(error)),
            };
            if piece.len() as u64 > info.bytes - sink.position {
                return incomplete("the gateway sent more bytes than the file has");
            }
            sink.write(&piece).await?;
            if sink.position > self.furthest {
                (self.furthest, self.pauses.failures) = (sink.position, 0);
            }
        }
    }

    fn note(&self, text: &str) {
        self.progress.suspend(|| print_line(text));
    }

    fn restart(&mut self, sink: &mut Sink, info: &FileInfo, why: &str) -> Result<(), Failure> {
        if sink.position > 0 {
            self.note(&format!("{why}; starting over"));
        }
        if let Some((_, bytes)) = &mut self.part {
            *bytes = info.bytes;
        }
        sink.restart()
    }

    /// Handles a complete file with a wrong checksum: starts again, the second time fails.
    fn wrong(&mut self, sink: &mut Sink, info: &FileInfo, is_second: bool) -> Result<(), Failure> {
        let figures = format!("its checksum is {:08x} instead of {:08x}", sink.crc32c, info.crc32c);
        if !sink.is_file() || is_second {
            sink.remove();
            return Err(failed!(
                "the file is damaged ({figures}) and was discarded; try again, or use another --url"
            ));
        }
        self.restart(sink, info, &format!("the file is damaged ({figures})"))
    }

    /// Pauses before the next try; fails when there is none left, or when none can succeed.
    async fn wait(&mut self, error: &GatewayError) -> Result<(), Failure> {
        let retry_after = match error {
            error if !error.is_temporary() => return Err(refused(error)),
            GatewayError::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        if self.pauses.failures >= self.retries {
            let attempts = u64::from(self.retries) + 1;
            let plural = if attempts == 1 { "" } else { "s" };
            let advice = error.advice();
            return Err(failed!(
                "gave up after {attempts} attempt{plural} without progress ({error}); {advice}"
            ));
        }
        let pause = self.pauses.next(retry_after);
        self.note(&format!("{error}; retrying in {:.1} s", pause.as_secs_f64()));
        sleep(pause).await;
        Ok(())
    }
}

/// The progress line, at a terminal only.
fn progress_bar() -> ProgressBar {
    const LINE: &str =
        "[{bar:24}] {percent:>3} % of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(LINE).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::no_length().with_style(style.progress_chars("=> "))
}
