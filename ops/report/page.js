// Draws the curves of the page. uPlot precedes this script; the data are in the page, and nothing is loaded.
"use strict";
(() => {
  const { runs, panels } = JSON.parse(document.getElementById("data").textContent);
  const HEIGHT = 230, NULL_EXPAND = 2, COLOURS = 6, POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);
  let axis = "step", plots = [];

  const number = (value) =>
    value && Math.abs(value) < 1e-3 ? value.toExponential(2).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(4)));
  const count = (value) => Math.round(value).toLocaleString("en-US");
  const scaled = (value, base, units) => {
    let power = 0;
    while (Math.abs(value) >= base && power < units.length - 1) { value /= base; power += 1; }
    return `${Number(value.toPrecision(3))}${units[power]}`;
  };
  const size = (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
  const large = (value) => scaled(value, 1000, ["", " k", " M", " B", " T"]);
  const time = (value) => {
    const minutes = Math.floor(value / 60), hours = Math.floor(minutes / 60);
    if (hours) return `${hours} h ${String(minutes % 60).padStart(2, "0")}`;
    return minutes ? `${minutes} min${value % 60 ? ` ${Math.round(value % 60)} s` : ""}` : `${Number(value.toFixed(1))} s`;
  };
  const WRITTEN = { number, count, size, share: (value) => `${Number((value * 100).toPrecision(3))} %` };
  const ON_AXIS = { ...WRITTEN, count: large };
  const X = {
    step: { written: (value) => `step ${count(value)}`, ticks: (value) => (value < 1e5 ? count(value) : large(value)) },
    seconds: { written: time, ticks: time, incrs: [1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400] },
    tokens: { written: (value) => `${large(value)} tokens`, ticks: large },
    message_bytes: { written: size, ticks: size },
  };

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const ofRun = (index) => colour(`--run-${(index % COLOURS) + 1}`);

  // Interpolates the position of a step on another axis.
  const placeOf = (run, step, to) => {
    const from = run.axes.step, there = run.axes[to];
    if (!from || !there) return null;
    const next = from.findIndex((value) => value >= step);
    if (next <= 0) return there[next === 0 ? 0 : there.length - 1];
    const part = (step - from[next - 1]) / (from[next] - from[next - 1]);
    return there[next - 1] + part * (there[next] - there[next - 1]);
  };
  const markAt = (run, mark) =>
    axis === "step" ? mark.step : axis === "seconds" ? mark.seconds : placeOf(run, mark.step, axis);

  const drawMarks = (plot, members) => {
    const { ctx, bbox } = plot, ratio = devicePixelRatio;
    const inside = (x) => x !== null && x >= plot.scales.x.min && x <= plot.scales.x.max;
    ctx.save();
    for (const { run, index } of members) {
      ctx.strokeStyle = ctx.fillStyle = runs.length > 1 ? ofRun(index) : colour("--muted");
      ctx.lineWidth = ratio;
      ctx.setLineDash([4 * ratio, 4 * ratio]);
      for (const start of run.restarts) {
        const at = markAt(run, start);
        if (!inside(at)) continue;
        const left = Math.round(plot.valToPos(at, "x", true));
        ctx.beginPath();
        ctx.moveTo(left, bbox.top);
        ctx.lineTo(left, bbox.top + bbox.height);
        ctx.stroke();
      }
      for (const checkpoint of run.checkpoints) {
        const at = markAt(run, checkpoint);
        if (!inside(at)) continue;
        const left = plot.valToPos(at, "x", true), bottom = bbox.top + bbox.height;
        ctx.beginPath();
        ctx.moveTo(left - 4 * ratio, bottom);
        ctx.lineTo(left + 4 * ratio, bottom);
        ctx.lineTo(left, bottom - 7 * ratio);
        ctx.fill();
      }
    }
    ctx.restore();
  };

  const drawFloors = (plot, members) => {
    const { ctx, bbox } = plot, ratio = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--floor");
    ctx.lineWidth = ratio;
    ctx.textAlign = "left";
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    for (const { run } of members) {
      for (const [bytes, least] of run.floors) {
        const top = Math.round(plot.valToPos(least, "y", true));
        ctx.beginPath();
        ctx.moveTo(bbox.left, top);
        ctx.lineTo(bbox.left + bbox.width, top);
        ctx.stroke();
        ctx.fillText(`floor ${number(least)} GB/s at ${size(bytes)}`, bbox.left + 6 * ratio, top - 5 * ratio);
      }
    }
    ctx.restore();
  };

  // Shows the values under the pointer, or the last ones, in one line above each chart.
  const readOut = (place, panel, members, plot) => {
    const at = plot.cursor.idx, write = WRITTEN[panel.kind], words = [];
    const last = (values) => { for (let i = values.length - 1; i >= 0; i -= 1) if (values[i] != null) return i; return null; };
    if (at != null) words.push([null, X[panel.axis || axis].written(plot.data[0][at])]);
    for (const { run, index, column, banded } of members) {
      const values = plot.data[column];
      let i = at ?? last(values);
      while (i > 0 && values[i] == null) i -= 1;
      if (i == null || values[i] == null) continue;
      const [low, high] = banded ? [plot.data[column + 1][i], plot.data[column + 2][i]] : [null, null];
      const reach = low != null && low !== high ? ` (${write(low)} to ${write(high)})` : "";
      words.push([index, `${at == null ? "last " : ""}`, write(values[i]), reach, runs.length > 1 ? ` ${run.name}` : ""]);
    }
    place.replaceChildren(...words.map(([index, before, value, ...after]) => {
      const word = document.createElement("span");
      if (index !== null && runs.length > 1) {
        const key = document.createElement("i");
        key.className = `key run-${(index % COLOURS) + 1}`;
        word.append(key);
      }
      word.append(before);
      if (value !== undefined) {
        const strong = document.createElement("b");
        strong.textContent = value;
        word.append(strong, after.join(""));
      }
      return word;
    }));
  };

  // No line connects the end of one start with the next start.
  const breakAt = ([xs, ...columns], seconds) => {
    const next = xs.findIndex((x) => x >= seconds);
    if (next <= 0 || xs[next] === seconds) return;
    xs.splice(next, 0, seconds);
    columns.forEach((values) => values.splice(next, 0, null));
  };

  const columnsOf = (panel, over) => {
    const members = [], tables = [], series = [{}], bands = [];
    runs.forEach((run, index) => {
      const found = run.series[panel.series], xs = run.axes[over];
      if (!found || !xs || xs.every((x) => x == null)) return;
      const banded = found.low.length > 0, column = series.length, stroke = ofRun(index);
      // Most steps have no validation; a line connects those that have one.
      const sparse = panel.series === "val_loss";
      const there = xs.map((_, i) => i).filter((i) => xs[i] != null && !(sparse && found.mean[i] == null));
      const columns = [xs, found.mean, ...(banded ? [found.low, found.high] : [])];
      const table = columns.map((values) => there.map((i) => values[i]));
      if (over === "seconds") run.restarts.forEach((start) => breakAt(table, start.seconds));
      members.push({ run, index, column, banded });
      tables.push(table);
      series.push({ stroke, width: 1.75, points: { show: there.length < 40, size: 5, fill: stroke } });
      if (banded) {
        const edge = { stroke: "transparent", width: 0, points: { show: false } };
        series.push(edge, edge);
        bands.push({ series: [column + 2, column + 1], fill: `color-mix(in srgb, ${stroke} 22%, transparent)` });
      }
    });
    // Keeps the gaps of each run if several runs share an axis.
    const data = tables.length ? uPlot.join(tables, tables.map((table) => table.map(() => NULL_EXPAND))) : [[]];
    return { members, data, series, bands };
  };

  const draw = (figure, panel) => {
    const over = panel.axis || axis, place = figure.querySelector(".plot"), values = figure.querySelector(".values");
    place.replaceChildren();
    const { members, data, series, bands } = columnsOf(panel, over);
    if (!members.length) {
      values.textContent = "The run did not write this axis down.";
      return;
    }
    const font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    const line = { font, stroke: colour("--muted"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false } };
    const marks = (plot) => (panel.axis ? drawFloors : drawMarks)(plot, members);
    const tops = members.flatMap(({ run }) => (panel.axis ? run.floors.map((floor) => floor[1]) : []));
    const range = (plot, low, high) => {
      const top = Math.max(high, ...tops), margin = (top - low) * 0.06 || Math.abs(top) * 0.06 || 1;
      return [panel.from_zero ? Math.min(0, low) : low - margin, top + margin];
    };
    const plot = new uPlot({
      width: place.clientWidth, height: HEIGHT, series, bands, legend: { show: false },
      scales: { x: panel.axis ? { time: false, distr: 3, log: 2 } : { time: false }, y: { range } },
      axes: [
        { ...line, space: 70, size: 30, values: (_, at) => at.map((value) => (value == null ? "" : X[over].ticks(value))),
          ...(X[over].incrs ? { incrs: X[over].incrs } : {}),
          ...(panel.axis ? { filter: (_, at) => at.map((value) => (Math.round(Math.log2(value)) % (place.clientWidth < 420 ? 6 : 3) ? null : value)) } : {}) },
        { ...line, size: 64, ...(panel.kind === "size" ? { incrs: POWERS } : {}), values: (_, at) => at.map((value) => ON_AXIS[panel.kind](value)) },
      ],
      cursor: { y: false, sync: { key: over, scales: ["x", null] }, drag: { x: true, y: false }, points: { size: 7 } },
      hooks: { draw: [marks], setCursor: [(plot) => readOut(values, panel, members, plot)] },
    }, data, place);
    plot.over.addEventListener("touchmove", (event) => {
      const box = plot.over.getBoundingClientRect(), touch = event.touches[0];
      plot.setCursor({ left: touch.clientX - box.left, top: touch.clientY - box.top });
    }, { passive: true });
    readOut(values, panel, members, plot);
    plots.push(plot);
  };

  const drawAll = () => {
    plots.forEach((plot) => plot.destroy());
    plots = [];
    panels.forEach((panel) => draw(document.getElementById(`chart-${panel.series}`), panel));
  };

  const controls = document.getElementById("controls");
  controls.hidden = panels.length === 0;
  document.getElementById("axes").hidden = panels.every((panel) => panel.axis);
  controls.addEventListener("change", (event) => { axis = event.target.value; drawAll(); });
  document.getElementById("whole").addEventListener("click", () => plots.forEach((plot) => plot.setData(plot.data)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("resize", () => plots.forEach((plot) => plot.setSize({ width: plot.root.parentNode.clientWidth, height: HEIGHT })));
  controls.reset();
  drawAll();
})();
