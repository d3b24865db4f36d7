// The curves of the status page: two charts that share one time axis. Their numbers come from the gateway's rings, so what
// happened before the page was opened is there. Names come from peers and go into the page as text only.
"use strict";

(() => {
  const COLOURS = 8, MARKED = new Set(["takeover", "loop", "health", "late", "drop"]);
  const charts = [...document.querySelectorAll(".chart")].map((box) => ({
    canvas: box.querySelector("canvas"), kind: box.querySelector("select"), legend: box.querySelector(".legend"),
    unit: box.querySelector(".unit"), data: null, hidden: new Set(),
  }));
  const span = byId("span"), pause = byId("pause"), whole = byId("whole"), at = byId("at");
  let zoom = null, held = null, pointed = null, drag = null, paused = false, timer = 0;

  // ---- asking
  async function ask(chart) {
    const kind = chart.kind.value, asked = span.value, answer = await fetch(`history.json?kind=${kind}&span=${asked}`);
    const data = answer.ok ? await answer.json() : chart.data;
    if (kind !== chart.kind.value || asked !== span.value) return;  // another was chosen meanwhile
    chart.data = data;
    all();
  }

  function forget(chart) { chart.data = null; chart.hidden.clear(); list(chart); draw(chart); }

  function refresh() {
    clearTimeout(timer);
    if (!paused && !document.hidden) for (const chart of charts) ask(chart).catch(() => {});
    timer = setTimeout(refresh, span.value === "24h" ? 30000 : 2000);
  }

  // ---- the axis of time of all charts, in milliseconds since 1970; while it is paused, that of then
  function reach() {
    const known = charts.map((chart) => chart.data).filter(Boolean), end = Math.max(...known.map((data) => data.end_ns / 1e6));
    return zoom ?? held ?? (known.length ? [end - known[0].step_s * 1000 * (length(known[0]) - 1), end] : null);
  }
  const length = (data) => (span.value === "24h" ? 1440 : 900);
  const timeOf = (chart, place) => chart.data.end_ns / 1e6 - chart.data.step_s * 1000 * (length(chart.data) - 1 - place);
  const placeOf = (chart, time) => Math.round(length(chart.data) - 1 - (chart.data.end_ns / 1e6 - time) / (chart.data.step_s * 1000));

  // ---- drawing
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const words = (number) => (number === null || number === undefined ? "–" : Math.abs(number) >= 1e6 ? number.toExponential(2) : String(Number(number.toPrecision(4))));

  function steps(low, high, about) {
    const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw)), unit = [1, 2, 5, 10].find((one) => one * power >= raw) * power;
    const found = [];
    for (let value = Math.ceil(low / unit) * unit; value <= high + unit / 1e6; value += unit) found.push(value);
    return found;
  }

  function draw(chart) {
    if (!chart.data) { chart.canvas.width = chart.canvas.width; chart.time = null; return; }
    const { canvas, data } = chart, scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * scale; canvas.height = height * scale;
    const ink = canvas.getContext("2d"), left = 56, right = 8, top = 8, bottom = 22;
    ink.scale(scale, scale);
    ink.font = "12px system-ui, sans-serif";
    const [from, to] = reach(), first = Math.max(0, placeOf(chart, from)), last = Math.min(length(data) - 1, placeOf(chart, to));
    const shown = data.curves.filter((curve) => !chart.hidden.has(curve.name));
    let low = 0, high = 0;
    for (const curve of shown) for (let place = first; place <= last; place++) {
      const point = curve.points[place];
      if (point !== null) { low = Math.min(low, point); high = Math.max(high, point); }
    }
    if (high === low) high = low + 1;
    const x = (time) => left + (time - from) / (to - from) * (width - left - right);
    const y = (value) => height - bottom - (value - low) / (high - low) * (height - top - bottom);
    ink.strokeStyle = style("--rule"); ink.fillStyle = style("--dim"); ink.lineWidth = 1;
    ink.textAlign = "right"; ink.textBaseline = "middle";
    for (const value of steps(low, high, 4)) { line(ink, left, y(value), width - right, y(value)); ink.fillText(words(value), left - 6, y(value)); }
    ink.textAlign = "center"; ink.textBaseline = "top";
    const minutes = (to - from) / 60000, step = [1 / 6, 1, 3, 5, 15, 60, 180, 240].find((one) => minutes / one <= Math.max(2, width / 110)) ?? 360;
    for (let time = Math.ceil(from / (step * 60000)) * step * 60000; time <= to; time += step * 60000)
      ink.fillText(stamp(time).slice(11, step < 1 ? 19 : 16), x(time), height - bottom + 6);
    events(ink, x, from, to, top, height - bottom);
    shown.forEach((curve) => {
      ink.strokeStyle = colour(chart, curve); ink.lineWidth = 1.6; ink.beginPath();
      let pen = false;
      for (let place = first; place <= last; place++) {
        const point = curve.points[place];
        if (point === null) { pen = false; continue; }
        const to_x = x(timeOf(chart, place)), to_y = y(point);
        if (pen) ink.lineTo(to_x, to_y); else { ink.moveTo(to_x, to_y); ink.lineTo(to_x + 0.5, to_y); }
        pen = true;
      }
      ink.stroke();
    });
    if (pointed !== null && pointed >= from && pointed <= to) { ink.strokeStyle = style("--ink"); ink.lineWidth = 1; line(ink, x(pointed), top, x(pointed), height - bottom); }
    if (drag) { ink.fillStyle = style("--focus"); ink.globalAlpha = 0.15; ink.fillRect(x(Math.min(...drag)), top, x(Math.max(...drag)) - x(Math.min(...drag)), height - bottom - top); ink.globalAlpha = 1; }
    chart.time = (pixel) => from + Math.min(1, Math.max(0, (pixel - left) / (width - left - right))) * (to - from);
  }

  function line(ink, x1, y1, x2, y2) { ink.beginPath(); ink.moveTo(x1, y1); ink.lineTo(x2, y2); ink.stroke(); }

  function events(ink, x, from, to, top, bottom) {
    ink.save();
    ink.setLineDash([3, 3]); ink.lineWidth = 1; ink.strokeStyle = style("--bad");
    for (const time of marked()) if (time >= from && time <= to) line(ink, x(time), top, x(time), bottom);
    ink.restore();
  }

  const marked = () => (latest?.events ?? []).filter((event) => MARKED.has(event.kind)).map((event) => event.time_ms);
  const colour = (chart, curve) => style(`--curve-${chart.data.curves.indexOf(curve) % COLOURS}`);

  // ---- the names: each is a button that hides its curve, with the value where the pointer is, or the last one
  function list(chart) {
    if (!chart.data) { set(chart.unit, ""); delete chart.legend.dataset.names; chart.legend.replaceChildren(); return; }
    set(chart.unit, chart.data.unit);
    const names = chart.data.curves.map((curve) => curve.name);
    if (chart.legend.dataset.names !== JSON.stringify(names)) {
      chart.legend.dataset.names = JSON.stringify(names);
      chart.legend.replaceChildren(...names.map((name) => {
        const button = document.createElement("button"), dot = document.createElement("i"), label = document.createElement("span"), value = document.createElement("b");
        button.type = "button"; label.textContent = name;
        button.append(dot, label, value);
        button.addEventListener("click", () => { chart.hidden.has(name) ? chart.hidden.delete(name) : chart.hidden.add(name); list(chart); draw(chart); });
        return button;
      }));
      if (!names.length) chart.legend.textContent = "Nothing of this kind was seen here.";
    }
    [...chart.legend.querySelectorAll("button")].forEach((button, number) => {
      const curve = chart.data.curves[number], place = pointed === null ? length(chart.data) - 1 : placeOf(chart, pointed);
      button.firstChild.style.background = colour(chart, curve);
      attribute(button, "aria-pressed", String(!chart.hidden.has(curve.name)));
      set(button.lastChild, words(curve.points[place]));
    });
  }

  function all() {
    whole.hidden = zoom === null;
    set(at, pointed === null ? "" : stamp(pointed));
    for (const chart of charts) { list(chart); draw(chart); }
  }

  // ---- the pointer: it shows values, and dragged it zooms both charts
  for (const chart of charts) {
    const { canvas } = chart, time = (event) => chart.time?.(event.clientX - canvas.getBoundingClientRect().left) ?? null;
    canvas.addEventListener("pointermove", (event) => { pointed = time(event); if (drag && pointed !== null) drag[1] = pointed; all(); });
    canvas.addEventListener("pointerleave", () => { if (!drag) { pointed = null; all(); } });
    canvas.addEventListener("pointerdown", (event) => { if (chart.time) { drag = [time(event), time(event)]; canvas.setPointerCapture(event.pointerId); } });
    canvas.addEventListener("pointerup", () => {
      if (drag && Math.abs(drag[1] - drag[0]) > 5000) { zoom = [Math.min(...drag), Math.max(...drag)]; setPaused(true); }
      drag = null; all();
    });
    canvas.addEventListener("pointercancel", () => { drag = pointed = null; all(); });  // the finger scrolls the page
    canvas.addEventListener("dblclick", () => unzoom());
    chart.kind.addEventListener("change", () => { forget(chart); ask(chart).catch(() => {}); });
  }
  function setPaused(state) { held = state ? reach() : null; paused = state; attribute(pause, "aria-pressed", String(state)); set(pause, state ? "Go on" : "Pause"); if (!state) refresh(); }
  function unzoom() { zoom = null; setPaused(false); all(); }

  span.addEventListener("change", () => { zoom = null; charts.forEach(forget); setPaused(false); });
  pause.addEventListener("click", () => setPaused(!paused));
  whole.addEventListener("click", unzoom);
  addEventListener("resize", all);
  document.addEventListener("visibilitychange", refresh);
  new MutationObserver(all).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  window.buscouplerMarks = marked;
  window.buscouplerReach = reach;
  window.buscouplerCurves = () => charts.map((chart) => chart.data?.curves.map((curve) => [curve.name, curve.points.filter((point) => point !== null).length]));
  refresh();
})();
