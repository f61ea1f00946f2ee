//! A headless Chromium driven by its own protocol over a pipe: no driver program, no port, no network.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use std::{env, thread};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser is heavy: one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// How long to wait for the browser before calling it stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// One browser with one tab, and all that it reported.
pub(crate) struct Chromium {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    events: Vec<Value>,
    last_id: u64,
    tab: Option<String>,
    _profile: TempDir,
    _one: MutexGuard<'static, ()>,
}

/// What a page did that a report must not do.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Complaints {
    /// Messages on the console, errors of scripts, violations of the policy.
    pub(crate) console: Vec<String>,
    /// Requests beyond the page itself.
    pub(crate) requests: Vec<String>,
    /// Dialogs opened.
    pub(crate) dialogs: Vec<String>,
}

/// Whether browser tests were switched off; says so if they were.
pub(crate) fn skipped() -> bool {
    let skipped = env::var_os("LAPWING_SKIP_BROWSER").is_some_and(|value| value == "1");
    if skipped {
        eprintln!("skipped: LAPWING_SKIP_BROWSER=1");
    }
    skipped
}

fn find() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|p| p.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "no Chromium found on PATH (looked for {}). Install it (Debian: apt-get install chromium), or set \
             LAPWING_SKIP_BROWSER=1 to leave the browser tests out",
            names.join(", ")
        )
    })
}

impl Chromium {
    pub(crate) fn start() -> Self {
        let one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let profile = TempDir::new().unwrap();
        // The protocol is spoken on file descriptors 3 and 4; the shell moves our two pipes there.
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#])
            .arg(find())
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-extensions",
            ])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else {
                    break;
                };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            child,
            commands,
            messages,
            events: Vec::new(),
            last_id: 0,
            tab: None,
            _profile: profile,
            _one: one,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.tab = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let mut command = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(tab) = &self.tab {
            command["sessionId"] = json!(tab);
        }
        let mut bytes = serde_json::to_vec(&command).unwrap();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        self.last_id
    }

    /// Takes the next message; events are kept, and dialogs closed because they would hold up the page.
    fn receive(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("Chromium stopped answering");
        if message["method"] == "Page.javascriptDialogOpening" {
            self.send("Page.handleJavaScriptDialog", json!({ "accept": true }));
        }
        if message.get("method").is_some() {
            self.events.push(message.clone());
        }
        message
    }

    /// Sends a command and waits for its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let mut message = self.receive();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
        }
    }

    /// Opens a file and waits until it is loaded and painted; forgets what happened before.
    pub(crate) fn open(&mut self, file: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            self.receive();
        }
    }

    /// Evaluates an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let mut result = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(
            result.get("exceptionDetails").is_none(),
            "{expression}: {}",
            result["exceptionDetails"]
        );
        result["result"]["value"].take()
    }

    /// Clicks the middle of the first element that the selector finds.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.eval(&format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{ block: 'center', inline: 'center' }}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses Enter.
    pub(crate) fn enter(&mut self) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r" });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Makes the window so wide, as on a phone or a desk.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// What the page did since it was opened that it should not do.
    pub(crate) fn complaints(&mut self) -> Complaints {
        // Two frames and a turn of the event loop, so that what was begun is also reported.
        self.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))");
        let mut complaints = Complaints::default();
        for event in &self.events {
            let params = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.consoleAPICalled" => complaints.console.push(params["args"].to_string()),
                "Runtime.exceptionThrown" => {
                    complaints.console.push(params["exceptionDetails"].to_string());
                }
                "Log.entryAdded" => complaints.console.push(params["entry"]["text"].to_string()),
                "Page.javascriptDialogOpening" => {
                    complaints.dialogs.push(params["message"].to_string());
                }
                "Network.requestWillBeSent" if params["type"] != "Document" => {
                    let url = params["request"]["url"].to_string();
                    // What stands in the page itself is loaded from nowhere.
                    complaints.requests.extend((!url.starts_with("\"data:")).then_some(url));
                }
                _ => {}
            }
        }
        complaints
    }

    /// Saves a picture of the whole page into the folder named by LAPWING_SCREENSHOTS, if it is set.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(folder) = env::var_os("LAPWING_SCREENSHOTS") else {
            return;
        };
        let shot = self.call(
            "Page.captureScreenshot",
            json!({ "format": "png", "captureBeyondViewport": true }),
        );
        let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(Path::new(&folder).join(name), bytes).unwrap();
    }

    /// Prints the page and gives the PDF; also saved where pictures are.
    pub(crate) fn print(&mut self, name: &str) -> Vec<u8> {
        let pdf = self.call(
            "Page.printToPDF",
            json!({ "preferCSSPageSize": true, "printBackground": false }),
        );
        let bytes = STANDARD.decode(pdf["data"].as_str().unwrap()).unwrap();
        if let Some(folder) = env::var_os("LAPWING_SCREENSHOTS") {
            std::fs::write(Path::new(&folder).join(name), &bytes).unwrap();
        }
        bytes
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
