// The progress section: metrics as tabs, axis choices, the chart, and a legend that is also the readout.
//
// A metric with an x of its own belongs to a sweep: its curves lie over that x, on logarithmic axes.

function curvesSection(data, state, changed) {
  const host = document.getElementById("curves");
  if (!data.metrics.length) { host.append(html("p", {}, "Nothing was recorded: the runs have no history.")); return null; }
  const logs = data.metrics.map((metric) => metric.log);
  const factors = {
    round: () => 1,
    steps: (method) => method.localSteps || 1,
    bytes: (method) => method.bytesPerRound || 0,
  };
  const ranged = data.methods.some((method) => method.seeds.length > 1);
  const seriesOf = (metric, axis, keep) => metric.curves.map((curve, i) => ({
    method: data.methods[i], index: i, diverged: data.methods[i].diverged.length > 0,
    x: metric.x ? curve.round : curve.round.map((r) => r * factors[axis](data.methods[i])), round: curve.round,
    y: curve.mean, low: curve.low, high: curve.high, runs: curve.runs,
  })).filter((s) => keep(s.index) && (!metric.x || s.x.length));
  const visible = (i) => !state.hidden.has(i);
  const axisOf = (metric) => (metric.x ? { ...metric.x, format: (x) => (Number.isInteger(x) ? whole(x) : significant(x)), log: true } : AXES[state.axis]);

  // Tabs, each with its metric in small.
  const tabs = data.metrics.map((metric, i) => html("button", {
    type: "button", role: "tab", id: `tab${i}`, "aria-controls": "panel", class: "tab",
    onclick: () => select(i), onkeydown: (event) => tabKey(event, i),
  }, html("span", {}, metric.tab || metric.label), html("span", { class: "thumb", "aria-hidden": "true" })));
  function tabKey(event, i) {
    const n = tabs.length;
    const to = { ArrowRight: (i + 1) % n, ArrowLeft: (i + n - 1) % n, Home: 0, End: n - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to);
    tabs[to].focus();
  }
  function select(i) { state.metric = i; refresh(); }

  function thumb(metric, log) {
    const series = seriesOf(metric, "round", visible);
    const [low, high] = domainOf(series, log, null);
    const last = Math.max(metric.x ? 0 : 1, ...series.map((s) => s.x[s.x.length - 1] || 0));
    const first = metric.x ? Math.min(last, ...series.flatMap((s) => s.x)) : 0;
    const X = scaleOf(first, last, Boolean(metric.x), 1, 119), Y = scaleOf(low, high, log, 35, 3);
    return svg("svg", { viewBox: "0 0 120 38", preserveAspectRatio: "none" }, series.map((s) => {
      const kept = spread(s.x.length, 90).filter((j) => drawable(s.y[j]) && (!log || s.y[j] > 0));
      const d = kept.map((j, k) => `${k ? "L" : "M"}${X(s.x[j]).toFixed(1)},${Math.max(-40, Y(s.y[j])).toFixed(1)}`).join("");
      return svg("path", { class: `m${s.method.colour}`, d: kept.length === 1 ? `${d}h.01` : d });
    }));
  }

  // Legend and readout in one.
  const readAt = html("th", { scope: "col", class: "n", id: "read-at" });
  const rows = data.methods.map((method, i) => {
    const value = html("td", { class: "n value" }), range = html("td", { class: "n range" });
    const button = html("button", { type: "button", class: "method", "aria-pressed": "true", onclick: () => toggle(i) },
      swatch(method), html("span", { class: "name" }, method.name));
    const ended = method.diverged.length ? "diverged" : method.interrupted.length ? "interrupted" : null;
    const of = (seeds) => (method.seeds.length > 1 ? ` (seed ${seeds.join(", ")})` : "");
    const trouble = ended && html("span", { class: "trouble" }, ended + of(ended === "diverged" ? method.diverged : method.interrupted));
    const row = html("tr", { "data-method": method.name }, html("th", { scope: "row" }, button, trouble), value, ranged ? range : null);
    return { row, button, value, range };
  });
  const all = html("button", { type: "button", class: "quiet", onclick: () => { state.hidden.clear(); changed(); } }, "Show all");
  const none = html("button", { type: "button", class: "quiet", onclick: () => { data.methods.forEach((_, i) => state.hidden.add(i)); changed(); } }, "Hide all");
  const legend = html("div", { class: "legend" },
    html("table", {}, html("caption", { class: "unseen" }, "Methods, and their values at the crosshair"),
      html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "Method"), readAt,
        ranged ? html("th", { scope: "col", class: "n" }, "min – max") : null)),
      html("tbody", {}, rows.map((r) => r.row))),
    data.methods.length > 1 ? html("p", { class: "actions" }, all, none) : null);
  function toggle(i) {
    if (!state.hidden.delete(i)) state.hidden.add(i);
    changed();
  }

  function read(x, chart) {
    const axis = chart.view.x;
    readAt.textContent = x === null ? "at the end" : `${axis.name} ${axis.format(x)}`;
    rows.forEach(({ value, range }) => { value.replaceChildren(); range.replaceChildren(); });
    for (const s of chart.view.series) {
      const i = x === null ? s.x.length - 1 : chart.nearest(s, x);
      const { value, range } = rows[s.index];
      if (!s.x.length) { value.textContent = "–"; continue; }
      if (i === null) { value.append(html("span", { class: "aside" }, `ended at ${axis.format(s.x[s.x.length - 1])}`)); continue; }
      value.append(significant(s.y[i]));
      if (x !== null && s.x[i] !== x) value.append(html("span", { class: "aside" }, ` at ${axis.format(s.x[i])}`));
      if (s.low) range.append(`${significant(s.low[i])} – ${significant(s.high[i])}`);
      if (s.runs && s.runs[i] < s.method.seeds.length) range.append(html("span", { class: "aside" }, ` ${s.runs[i]} of ${s.method.seeds.length} runs`));
    }
  }
  function describe(x, chart) {
    const axis = chart.view.x;
    const values = chart.view.series.map((s) => {
      const i = x === null ? s.x.length - 1 : chart.nearest(s, x);
      return `${s.method.name} ${i === null || i < 0 ? "ended" : significant(s.y[i])}`;
    });
    return `${x === null ? "At the end" : `${axis.name} ${axis.format(x)}`}: ${values.join(", ")}`;
  }

  const chart = new Chart({ describe, onmove: read });
  const title = html("h3", { id: "chart-title" });
  const remark = html("p", { class: "remark" });
  const controls = html("div", { class: "controls" });
  const values = onDemand("The values as a table", () => {
    const metric = data.metrics[state.metric], series = seriesOf(metric, "round", visible);
    const rounds = [...new Set(series.flatMap((s) => s.round))].sort((a, b) => a - b);
    const kept = spread(rounds.length, 250).map((i) => rounds[i]);
    const cells = (r) => series.map((s) => {
      const i = s.round.indexOf(r);
      if (i < 0) return "";
      return significant(s.y[i]) + (s.low ? ` (${significant(s.low[i])} – ${significant(s.high[i])})` : "");
    });
    const some = kept.length < rounds.length ? `, ${kept.length} of ${rounds.length} rounds` : "";
    const [head, format] = metric.x ? [metric.x.label, axisOf(metric).format] : ["Round", whole];
    return valuesTable([head, ...series.map((s) => s.method.name)], kept.map((r) => [format(r), ...cells(r)]),
      `${metric.label}${series.some((s) => s.low) ? ": mean (min – max)" : ""}${some}`);
  });
  const panel = html("div", { id: "panel" }, html("div", { class: "over" }, title, controls),
    html("div", { class: "plot" }, chart.node, legend), remark, values);
  if (tabs.length > 1) {
    panel.setAttribute("role", "tabpanel");
    host.append(html("div", { class: "tabs", role: "tablist", "aria-label": "Metric" }, tabs));
  }
  host.append(panel);

  function drawControls(metric, positive) {
    const log = logs[state.metric] && positive;
    const axes = ["round", ...(data.methods.some((m) => m.localSteps) ? ["steps"] : []), ...(data.methods.every((m) => m.bytesPerRound) ? ["bytes"] : [])];
    const vertical = choice("Vertical axis", [
      { value: "log", text: "Log", disabled: positive ? "" : "needs values above zero" }, { value: "linear", text: "Linear" },
    ], log ? "log" : "linear", (value) => { logs[state.metric] = value === "log"; draw(); });
    const horizontal = choice("Horizontal axis", axes.map((axis) => ({ value: axis, text: AXES[axis].button })), state.axis,
      (value) => { state.axis = value; draw(); });
    controls.replaceChildren(vertical, ...(axes.length > 1 && !metric.x ? [horizontal] : []));
  }

  function draw() {
    const metric = data.metrics[state.metric], series = seriesOf(metric, state.axis, visible);
    const positive = metric.curves.some((curve) => curve.mean.some((v) => v > 0));
    const log = logs[state.metric] && positive;
    const dropped = log && series.some((s) => s.y.some((v) => drawable(v) && v <= 0));
    const odd = state.axis === "steps" && data.methods.filter((m) => !m.localSteps).map((m) => m.name);
    const remarks = [];
    if (ranged) remarks.push("Lines are means over seeds, bands reach from the least to the greatest.");
    if (dropped) remarks.push("Values that are not positive are not drawn on the logarithmic axis.");
    if (series.some((s) => s.diverged)) remarks.push("A cross marks where a diverged method's record ends.");
    if (odd && odd.length) remarks.push(`One step a round is counted for ${odd.join(", ")}, which has no setting of local steps.`);
    remark.textContent = remarks.join(" ");
    title.textContent = metric.label;
    panel.setAttribute("aria-labelledby", tabs.length > 1 ? `tab${state.metric}` : "chart-title");
    chart.show({ series, log, x: axisOf(metric), label: metric.label,
      reference: metric.reference === null ? null : { value: metric.reference, label: data.referenceLabel } });
    tabs[state.metric].lastChild.replaceChildren(thumb(metric, log));
    values.refresh();
  }

  function refresh() {
    const metric = data.metrics[state.metric];
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === state.metric));
      tab.tabIndex = i === state.metric ? 0 : -1;
      tab.lastChild.replaceChildren(thumb(data.metrics[i], logs[i]));
    });
    rows.forEach(({ row, button }, i) => {
      button.setAttribute("aria-pressed", String(visible(i)));
      row.classList.toggle("off", !visible(i));
      row.hidden = Boolean(metric.x) && !metric.curves[i].round.length;
    });
    all.disabled = state.hidden.size === 0;
    none.disabled = state.hidden.size === data.methods.length;
    drawControls(metric, metric.curves.some((curve) => curve.mean.some((v) => v > 0)));
    draw();
  }
  return refresh;
}
