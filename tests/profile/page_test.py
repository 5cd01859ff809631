#!/usr/bin/env python3
"""The page of HAL_PROFILE in a headless Chromium: no script errors, all views drawn, zoom, movement and
search work; measures the frame times of 100,000 events. Exit status 77 without the browser.

page_test.py PAGE                       tests a page
page_test.py PAGE --screenshots FOLDER  also writes timeline.webp, kernels.webp, fusion.webp, memory.webp
"""
import re
import sys
import tempfile
from pathlib import Path

import browser

FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Times of a frame while the timeline zooms and moves: between frames, and of the drawing alone.
MEASURE = """new Promise(done => {
    const frames = [], draws = [], all = model.last;
    let before = performance.now(), n = 0;
    const step = now => {
        frames.push(now - before);
        before = now;
        const span = all * Math.pow(0.93, n % 120), at = all * (n % 37) / 37;
        view.begin = at; view.end = at + span;
        const start = performance.now();
        draw();
        draws.push(performance.now() - start);
        if (++n < 240) { requestAnimationFrame(step); } else {
            const worst = list => { list.sort((a, b) => a - b);
                return [list[list.length >> 1], list[Math.floor(list.length * 0.99)]]; };
            done({frames: worst(frames.slice(1)), draws: worst(draws)});
        }
    };
    requestAnimationFrame(step);
})"""


def main(arguments):
    program = browser.find()
    if not program:
        print("no Chromium: skipped")
        return 77
    page = Path(arguments[0])
    shots = Path(arguments[2]) if arguments[1:2] == ["--screenshots"] else None
    chrome = browser.Browser(program)
    try:
        faults = views(chrome, page, shots)
        with tempfile.TemporaryDirectory() as folder:
            faults += many(chrome, page, Path(folder) / "many.html")
        faults += [f"script error: {error}" for error in chrome.errors]
    finally:
        chrome.close()
    for fault in faults:
        print("FAILED:", fault)
    return 1 if faults else 0


def expect(faults, chrome, what, expression):
    if not chrome.value(expression):
        faults.append(f"{what}: {expression}")


def views(chrome, page, shots):
    faults = []
    chrome.open(page)
    expect(faults, chrome, "rows", "model.rows.length > 1 && model.devices.length > 0")
    expect(faults, chrome, "groups", "model.groups.some(g => g.kernels.length > 0)")
    expect(faults, chrome, "memory", "model.memory.peak > 0 && model.memory.labels.length > 0")
    expect(faults, chrome, "products", "model.devices.some(s => s.args.operations > 0)")
    expect(faults, chrome, "products at the measured rate",  # 2e9 operations at 1,000 GFLOP/s
           "(kept => { model.peaks = {1: {units: {'matrix f16': 1000}}}; const time = "
           "timeAtPeak({pid: 1, args: {operations: 2e9, unit: 'matrix f16'}}); "
           "model.peaks = kept; return Math.abs(time - 2000) < 1; })(model.peaks)")
    for section in ("timeline", "kernels", "fusion", "memory"):
        chrome.value(f"document.querySelector('[data-section={section}]').click()")
        chrome.value(FRAMES)
        expect(faults, chrome, section, f"document.getElementById('{section}').offsetHeight > 100")
        if shots:
            chrome.screenshot(shots / f"{section}.webp")
    for section in ("kernels", "fusion"):
        expect(faults, chrome, section,
               f"document.querySelectorAll('#{section} tbody tr').length > 0")
    # A table's rows are sorted by a click on its head.
    chrome.value("document.querySelectorAll('#kernels th')[2].click()")
    expect(faults, chrome, "sorted", "[...document.querySelectorAll('#kernels tbody tr')].map("
           "r => +r.cells[2].textContent).every((v, i, a) => !i || a[i - 1] >= v)")
    chrome.value("document.querySelector('[data-section=timeline]').click()")
    chrome.value(FRAMES)
    faults += inputs(chrome)
    return faults


def inputs(chrome):
    """Real events of mouse and keys."""
    faults = []
    span = "view.end - view.begin"
    before = chrome.value(span)
    chrome.mouse("mouseWheel", 600, 80, deltaX=0, deltaY=-400)
    chrome.value(FRAMES)
    if not chrome.value(span) < before * 0.7:
        faults.append("the wheel does not zoom")
    at = chrome.value("view.begin")
    chrome.mouse("mousePressed", 700, 200, button="left", buttons=1, clickCount=1)
    chrome.mouse("mouseMoved", 600, 200, button="left", buttons=1)
    chrome.mouse("mouseReleased", 600, 200, button="left", clickCount=1)
    if not chrome.value("view.begin") > at:
        faults.append("dragging does not move")
    chrome.value("document.getElementById('search').focus()")
    name = chrome.value("model.devices[0].name")
    chrome.call("Input.insertText", text=name)
    chrome.value(FRAMES)
    found = chrome.value("document.getElementById('found').textContent")
    if not re.match(r"[1-9]\d* found", found):
        faults.append(f"searching {name} finds '{found}'")
    chrome.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter",
                windowsVirtualKeyCode=13)
    chrome.value(FRAMES)
    expect(faults, chrome, "Enter shows what is found",
           "document.getElementById('detail').textContent.startsWith(" + repr(name) + ")")
    chrome.value("search('')")
    return faults


def many(chrome, page, made):
    """The events of the page, repeated until there are 100,000, in a page of their own."""
    text = page.read_text()
    head, rest = text.split('id="events">\n[\n', 1)
    lines = rest[:rest.index("\n]\n</script>")].split(",\n")
    slices = [line for line in lines if line.startswith('{"ph":"X"')]
    begins = [float(re.search(r'"ts":([\d.]+)', line).group(1)) for line in slices]
    period = max(begins) + 1000
    added, turn = [], 1
    while len(slices) + len(added) < 100000:
        for line, begin in zip(slices, begins):
            added.append(re.sub(r'"ts":[\d.]+', f'"ts":{begin + turn * period:.3f}', line, count=1))
        turn += 1
    made.write_text(head + 'id="events">\n[\n' + ",\n".join(lines + added) +
                    "\n]\n</script>\n</body>\n</html>\n")
    chrome.open(made)
    faults = []
    expect(faults, chrome, "100,000 events", "model.rows.reduce((n, r) => n + r.count, 0) >= 100000")
    times = chrome.value(MEASURE)
    print("frames of 100,000 events, ms, median and 99 in 100: "
          "{:.1f} {:.1f}; drawing alone: {:.1f} {:.1f}".format(*times["frames"], *times["draws"]))
    return faults


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
