"""A headless Chromium for tests of the profile's page, over its debugging pipe: no port, no module."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The program, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    """One page. Errors of its scripts are collected in `errors`."""

    def __init__(self, program, width=1000, height=440):
        self.folder = tempfile.mkdtemp(prefix="profile-browser-")
        self.errors, self.number, self.pending = [], 0, b""
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()

        def descriptors():
            # Above 4 first: the pipes may have these numbers themselves.
            high = (os.dup2(to_browser, 100), os.dup2(from_browser, 101))
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
             f"--window-size={width},{height}", f"--user-data-dir={self.folder}",
             "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=descriptors, close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def read(self):
        while b"\0" not in self.pending:
            data = os.read(self.input, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self.pending += data
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", details).get("description", str(details)))
        entry = message.get("params", {}).get("entry", {})
        if message.get("method") == "Log.entryAdded" and entry.get("level") == "error":
            self.errors.append(entry["text"])

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            self.note(answer)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        for _ in range(600):
            if self.value("document.readyState === 'complete' && location.protocol === 'file:'"):
                return
            time.sleep(0.1)
        raise RuntimeError(f"{path} does not load")

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="webp", quality=60)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait(timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)
