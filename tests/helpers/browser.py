"""Debian's Chromium without a window, driven by its DevTools protocol."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is missing: apt-get install chromium")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-dev-shm-usage", "--disable-background-networking", "--remote-debugging-port=0"),
)
_PATIENCE_S = 40.0


class Page:
    """A page. What it says on its console, and what it throws, is in `said`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._number = socket, 0
        self.said: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to a command of the protocol."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            told = json.loads(self._socket.recv(_PATIENCE_S))
            if told.get("id") == self._number:
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result
            self._note(told)

    def _note(self, told: dict[str, Any]) -> None:
        if told.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.said.append(json.dumps(told["params"])[:500])

    def open(self, url: str) -> None:
        self.ask("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str, limit_s: float = _PATIENCE_S) -> Any:
        """Wait until an expression is true, and return its value."""
        end_s = time.monotonic() + limit_s
        while not (value := self.run(script)):
            assert time.monotonic() < end_s, f"never true: {script}: {self.run('document.body.innerText')}"
            time.sleep(0.05)
        return value

    def size(self, width: int, height: int) -> None:
        settings = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **settings)

    def prefer(self, scheme: str) -> None:
        """Have the system prefer `light` or `dark` colours."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def shot(self, path: Path, whole: bool = True) -> None:
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser() -> Iterator[Page]:
    """Run Chromium with one page, and end it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [str(CHROMIUM), *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            found = next(filter(None, (re.search(r"ws://\S+", line) for line in process.stderr)))
            with connect(_page_of(found.group()), max_size=1 << 26) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            process.wait(10)
            if process.stderr is not None:
                process.stderr.close()


def _page_of(url: str) -> str:
    """Return the address of the first page of a browser."""
    with connect(url) as socket:
        socket.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
        while "id" not in (told := json.loads(socket.recv(_PATIENCE_S))):
            pass
        pages = [one["targetId"] for one in told["result"]["targetInfos"] if one["type"] == "page"]
    return re.sub(r"/devtools/.*", f"/devtools/page/{pages[0]}", url)
