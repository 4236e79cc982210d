//! Drives a page as a user does: clicks, types, drags. Collects the browser's complaints.

use std::{path::PathBuf, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mesh_tests::say;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::Protocol;

/// Time limit for the first attempt to open an address.
const NAVIGATED_WITHIN: Duration = Duration::from_secs(30);

pub(crate) struct Page {
    pub(crate) protocol: Arc<Protocol>,
    session: String,
    /// URL of the gateway.
    url: String,
}

impl Page {
    pub(crate) fn new(protocol: Arc<Protocol>, session: String, url: &str) -> Self {
        Self { protocol, session, url: url.to_owned() }
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        self.protocol.call(Some(&self.session), method, params).await
    }

    /// Opens a view by its link in a freshly loaded page.
    pub(crate) async fn open(&self, view: &str) {
        // Without this a change of the fragment alone would not load the page again.
        self.navigate("about:blank").await;
        self.navigate(&format!("{}/{view}", self.url)).await;
        self.until("document.readyState === 'complete' && document.querySelector('main')").await;
    }

    /// Opens an address. On a busy machine the browser has left this unanswered for a minute; a second attempt replaces
    /// the first.
    async fn navigate(&self, url: &str) {
        let (method, params) = ("Page.navigate", json!({"url": url}));
        let session = Some(&*self.session);
        if self.protocol.call_within(NAVIGATED_WITHIN, session, method, &params).await.is_none() {
            say(&format!("the browser has not opened {url} within {NAVIGATED_WITHIN:?}; once more"));
            self.call(method, params).await;
        }
    }

    /// The value of a script; awaits it when it is a promise.
    pub(crate) async fn eval<T: DeserializeOwned>(&self, script: &str) -> T {
        let params = json!({
            "expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true,
        });
        let result = self.call("Runtime.evaluate", params).await;
        let thrown = &result["exceptionDetails"];
        assert!(thrown.is_null(), "{script}: {}", thrown["exception"]["description"]);
        serde_json::from_value(result["result"]["value"].clone())
            .unwrap_or_else(|error| panic!("{script} gives {result}: {error}"))
    }

    /// Waits until a JavaScript expression is true.
    pub(crate) async fn until(&self, expression: &str) {
        let script = format!("({})(() => ({expression}))", include_str!("until.js"));
        self.eval::<bool>(&script).await;
    }

    pub(crate) async fn theme(&self, theme: &str) {
        let preference = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.call("Emulation.setEmulatedMedia", preference).await;
    }

    /// Waits until a `data-` attribute of an element has a value.
    pub(crate) async fn until_data(&self, selector: &str, name: &str, value: impl Serialize) {
        let found = format!("document.querySelector({}).dataset.{name}", json!(selector));
        self.until(&format!("{found} === {}", json!(value))).await;
    }

    /// The value of a `data-` attribute of an element.
    pub(crate) async fn data(&self, selector: &str, name: &str) -> String {
        self.eval(&format!("document.querySelector({}).dataset.{name}", json!(selector))).await
    }

    pub(crate) async fn until_text(&self, selector: &str, text: &str) {
        let found = format!("[...document.querySelectorAll({})]", json!(selector));
        self.until(&format!("{found}.some(element => element.textContent === {})", json!(text))).await;
    }

    /// Waits until the elements have exactly these `data-` attributes, in this order.
    pub(crate) async fn until_all_data(&self, selector: &str, name: &str, expected: &[Value]) {
        assert!(!expected.is_empty(), "{selector}");
        let shown =
            format!("[...document.querySelectorAll({})].map(of => of.dataset.{name})", json!(selector));
        self.until_json(&shown, expected).await;
    }

    /// Waits until a JavaScript expression has a value.
    pub(crate) async fn until_json(&self, expression: &str, value: impl Serialize) {
        let value = json!(json!(value).to_string());
        self.until(&format!("JSON.stringify({expression}) === {value}")).await;
    }

    /// Whether a JavaScript expression is true now.
    pub(crate) async fn is(&self, expression: &str) -> bool {
        self.eval(&format!("Boolean({expression})")).await
    }

    /// Waits for an element and clicks on it.
    pub(crate) async fn click(&self, selector: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.until(&format!("{found} && !{found}.disabled")).await;
        self.eval::<Value>(&format!("void {found}.click()")).await;
    }

    /// Waits for a button with this text and clicks on it.
    pub(crate) async fn press(&self, label_text: &str) {
        let found = format!(
            "[...document.querySelectorAll('button')].find(button => button.textContent.trim() === {} && \
             !button.disabled)",
            json!(label_text)
        );
        self.until(&found).await;
        self.eval::<Value>(&format!("void {found}.click()")).await;
    }

    /// Types into the field with this label.
    pub(crate) async fn fill(&self, label: &str, text: &str) {
        let script = format!("({})({}, {})", include_str!("fill.js"), json!(label), json!(text));
        self.until(&script).await;
    }

    /// Presses a key; the focused element gets it.
    pub(crate) async fn key(&self, key: &str, shift: bool) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            _ => 0,
        };
        let modifiers = if shift { 8 } else { 0 };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": key, "modifiers": modifiers, "windowsVirtualKeyCode": code,
            });
            if key == "Enter" && kind == "keyDown" {
                event["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", event).await;
        }
    }

    /// Drags over an element, from one fraction of its width to another.
    pub(crate) async fn drag(&self, selector: &str, from: f64, to: f64) {
        let place = format!(
            "(() => {{ const element = document.querySelector({}); element.scrollIntoView({{block: 'center'}});
                const box = element.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; }})()",
            json!(selector)
        );
        let [x, y, width, height]: [f64; 4] = self.eval(&place).await;
        let at = |share: f64| (x + width * share, y + height / 2.0);
        for (kind, (x, y)) in [
            ("mousePressed", at(from)),
            ("mouseMoved", at((from + to) / 2.0)),
            ("mouseMoved", at(to)),
            ("mouseReleased", at(to)),
        ] {
            let buttons = i32::from(kind != "mouseReleased");
            let event =
                json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event).await;
        }
    }

    /// Saves a screenshot of the whole page.
    pub(crate) async fn picture(&self, name: &str) {
        self.save_picture(name, true).await;
    }

    /// Saves a screenshot of an element and what is around it, for a page that is very long.
    pub(crate) async fn picture_around(&self, selector: &str, name: &str) {
        let scroll = format!("void document.querySelector({}).scrollIntoView()", json!(selector));
        self.eval::<Value>(&scroll).await;
        self.save_picture(name, false).await;
    }

    /// Saves a screenshot if they are wanted: one takes more processor time than loading the page.
    async fn save_picture(&self, name: &str, is_whole: bool) {
        if std::env::var_os("MESH_TEST_PICTURES").is_none() {
            return;
        }
        let params = json!({"captureBeyondViewport": is_whole, "format": "png"});
        let shot = self.call("Page.captureScreenshot", params).await;
        let folder = screens();
        std::fs::create_dir_all(&folder).unwrap();
        let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// All events of a kind that the page has sent.
    pub(crate) fn events(&self, method: &str) -> Vec<Value> {
        self.protocol.events(&self.session, method)
    }

    /// What the browser complained about: exceptions, errors and warnings on its console, violations of the
    /// content security policy, and requests to other hosts.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let of = |method: &str| self.events(method);
        let thrown =
            of("Runtime.exceptionThrown").into_iter().map(|event| event["exceptionDetails"].to_string());
        let messages = of("Runtime.consoleAPICalled").into_iter();
        let messages = messages.filter(|event| event["type"] != "log" && event["type"] != "info");
        let logged = of("Log.entryAdded").into_iter().map(|event| event["entry"].clone());
        let logged = logged.filter(|entry| entry["level"] == "error" || entry["level"] == "warning");
        let requested = of("Network.requestWillBeSent").into_iter();
        let requested = requested.filter_map(|event| Some(event["request"]["url"].as_str()?.to_owned()));
        let known = ["about:", "blob:", "data:", &self.url];
        let elsewhere = requested.filter(|url| !known.iter().any(|known| url.starts_with(known)));
        // The console's reads are strict. The status of the mesh and the API document are no operations;
        // `/docs` asks what its visitor fills in.
        let is_lenient = |event: &Value| {
            let url = event["request"]["url"].as_str().unwrap_or_default();
            let is_read = event["type"] == "Fetch" && event["request"]["method"] != "POST";
            is_read
                && !url.ends_with("/console/now")
                && !url.ends_with("/openapi.json")
                && !event["documentURL"].as_str().is_some_and(|url| url.ends_with("/docs"))
                && !has_header(&event["request"]["headers"], "prefer")
        };
        let lenient = of("Network.requestWillBeSent").into_iter().filter(is_lenient);
        let received = of("Network.responseReceived").into_iter();
        let ignored = received.filter(|event| has_header(&event["response"]["headers"], "x-ignored"));
        thrown
            .chain(lenient.map(|event| format!("not strict: {}", event["request"])))
            .chain(ignored.map(|event| format!("something is ignored: {}", event["response"])))
            .chain(messages.map(|event| event.to_string()))
            .chain(logged.map(|entry| entry.to_string()))
            .chain(elsewhere.map(|url| format!("asked of another host: {url}")))
            .collect()
    }

    /// Asserts that the browser complained about nothing but refusals of a busy service.
    pub(crate) fn assert_quiet(&self) {
        self.assert_quiet_but_for("503 (Service");
    }

    /// The same where services were stopped: ignores the console's messages about failed answers.
    pub(crate) fn assert_quiet_but_for_failed_answers(&self) {
        self.assert_quiet_but_for("");
    }

    fn assert_quiet_but_for(&self, failed: &str) {
        let is_failed =
            |message: &String| message.contains(r#""source":"network""#) && message.contains(failed);
        let mut complaints = self.complaints();
        complaints.retain(|message| !is_failed(message));
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}

/// Whether headers, as the browser lists them, have one of this name.
fn has_header(headers: &Value, name: &str) -> bool {
    headers.as_object().into_iter().flatten().any(|(found, _)| found.eq_ignore_ascii_case(name))
}

fn screens() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    // The test's binary is in `<target>/<profile>/deps`.
    test.ancestors().nth(3).unwrap().join("console-screens")
}
