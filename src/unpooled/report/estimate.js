// What was estimated: support pattern and stems for coefficients, a chart of singular values for matrices.

function estimateSection(data, state) {
  const host = document.getElementById("estimate"), estimate = data.estimate;
  if (!host || !estimate) return () => {};
  const methodOf = (entry) => data.methods.findIndex((method) => method.name === entry.name);
  const shown = () => estimate.methods.filter((entry) => !state.hidden.has(methodOf(entry)));
  return { spectrum, images, coefficients }[estimate.kind](data, estimate, host, shown, methodOf);
}

const TRUTH = { name: "truth", colour: "truth", dash: "" };

function spectrum(data, estimate, host, shown, methodOf) {
  const readout = html("div", { class: "legend plain" });
  const series = () => [
    ...(estimate.truth ? [{ method: TRUTH, truth: true, values: estimate.truth }] : []),
    ...shown().map((entry) => ({
      method: data.methods[methodOf(entry)], values: entry.values, diverged: data.methods[methodOf(entry)].diverged.length > 0,
    })),
  ].map((s) => ({ ...s, x: s.values.map((_, i) => i + 1), y: s.values }));
  let log = false;
  const axis = { label: "index of the singular value", name: "σ", format: whole };
  const rank = (values) => values.filter((v) => v > 1e-6 * values[0]).length;
  const describe = (x, chart) => `${x === null ? "The largest" : `Singular value ${x}`}: ` +
    chart.view.series.map((s) => `${s.method.name} ${significant(s.y[(x || 1) - 1])}`).join(", ");
  const read = (x, chart) => readout.replaceChildren(html("table", {},
    html("caption", { class: "unseen" }, "Singular values at the crosshair"),
    html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "Method"),
      html("th", { scope: "col", class: "n" }, x === null ? "largest" : `number ${x}`), html("th", { scope: "col", class: "n" }, "rank"))),
    html("tbody", {}, chart.view.series.map((s) => html("tr", {},
      html("th", { scope: "row" }, html("span", { class: "method" }, swatch(s.method), html("span", { class: "name" }, s.method.name))),
      html("td", { class: "n value" }, significant(s.y[(x || 1) - 1])), html("td", { class: "n range" }, whole(rank(s.values))))))));
  const chart = new Chart({ describe, onmove: read });
  const values = onDemand("The singular values as a table", () => {
    const all = series();
    return valuesTable(["Number", ...all.map((s) => s.method.name)],
      all.length ? all[0].x.map((x, i) => [whole(x), ...all.map((s) => significant(s.y[i]))]) : [], "Singular values");
  });
  const controls = choice("Vertical axis", [{ value: "log", text: "Log" }, { value: "linear", text: "Linear" }], "linear",
    (value) => { log = value === "log"; draw(); });
  host.append(html("div", { class: "over" }, html("h3", {}, "Singular values"), html("div", { class: "controls" }, controls)),
    html("div", { class: "plot" }, chart.node, readout),
    html("p", { class: "remark" }, "The rank counts singular values above one millionth of the largest. Zeros are not drawn on the logarithmic axis."));
  document.getElementById("estimate-values").append(values);
  function draw() {
    chart.show({ series: series(), log, x: axis, label: "Singular values", points: true });
    values.refresh();
  }
  return draw;
}

function coefficients(data, estimate, host, shown, methodOf) {
  const { edges, truth } = estimate, n = edges.length - 1, size = edges[n];
  let mode = "estimate", at = null, panels = [];
  const pattern = html("div", { class: "pattern" });
  const stems = html("div", {
    class: "stems", tabindex: 0, role: "slider", "aria-valuemin": 0, "aria-valuemax": n - 1, "aria-orientation": "horizontal",
    "aria-label": "Coefficients; arrow keys move the crosshair",
    onkeydown: key, onblur: () => move(null), onpointermove: point, onpointerdown: point,
    onpointerleave: () => { if (document.activeElement !== stems) move(null); },
  });
  const span = (i) => (edges[i + 1] - edges[i] > 1 ? `${whole(edges[i])} – ${whole(edges[i + 1] - 1)}` : whole(edges[i]));
  const between = (low, high) => (low === high ? significant(low) : `${significant(low)} to ${significant(high)}`);
  const values = onDemand("The coefficients as a table", () => {
    const some = spread(n, 256), entries = shown();
    const head = ["Index", ...(truth ? ["truth"] : []), ...entries.map((e) => e.name)];
    return valuesTable(head, some.map((i) => [span(i), ...(truth ? [between(truth.low[i], truth.high[i])] : []),
      ...entries.map((e) => between(e.low[i], e.high[i]))]), `Coefficients${some.length < n ? `, ${some.length} of ${n} places` : ""}`);
  });

  // Where the coefficients are not zero: full ink where a whole bin is, none where none is.
  function strip(entry, colour) {
    const rects = [];
    let start = 0;
    const share = (i) => entry.nonzero[i] / (edges[i + 1] - edges[i]);
    for (let i = 1; i <= n; i += 1) {
      if (i < n && share(i) === share(start)) continue;
      if (share(start)) rects.push(svg("rect", { x: edges[start], width: edges[i] - edges[start], y: 0, height: 1, "fill-opacity": share(start).toFixed(2) }));
      start = i;
    }
    return svg("svg", { class: `strip m${colour}`, viewBox: `0 0 ${size} 1`, preserveAspectRatio: "none", "aria-hidden": "true" }, rects);
  }
  function drawPattern() {
    const row = (name, entry, colour) => html("div", { class: "row" }, html("span", { class: "name" }, name), strip(entry, colour),
      html("span", { class: "count" }, `${whole(entry.nonzeros)} nonzero`));
    pattern.replaceChildren(...(truth ? [row("truth", truth, "truth")] : []),
      ...shown().map((entry) => row(entry.name, entry, data.methods[methodOf(entry)].colour)));
  }

  function drawStems() {
    const width = stems.clientWidth || 640, height = 92, left = 52, right = width - 4, top = 8, bottom = height - 6;
    const error = mode === "error", entries = shown();
    heading.textContent = error ? "Errors: estimate minus truth" : truth ? "Estimates (strokes) and truth (line)" : "Estimates";
    const lows = (e) => (error ? e.error_low : e.low), highs = (e) => (error ? e.error_high : e.high);
    let low = 0, high = 0;
    const calm = entries.filter((e) => !data.methods[methodOf(e)].diverged.includes(e.seed)); // the others leave the frame
    for (const e of [...(calm.length ? calm : entries), ...(truth && !error ? [truth] : [])]) {
      for (const v of e === truth ? e.low : lows(e)) low = Math.min(low, v);
      for (const v of e === truth ? e.high : highs(e)) high = Math.max(high, v);
    }
    if (low === high) high = 1;
    const X = scaleOf(0, size, false, left, right), unclipped = scaleOf(low, high, false, bottom, top);
    const Y = (v) => Math.max(top - 4, Math.min(bottom + 4, unclipped(v)));
    const ticks = [low, 0, high].filter((v, i, a) => (i === 1 || v !== 0) && (v === 0 || Math.abs(Y(v) - Y(0)) > 12) && a.indexOf(v) === i);
    const middle = (i) => X((edges[i] + edges[i + 1]) / 2);
    const thick = Math.max(0.8, Math.min(3, ((right - left) / n) * ((right - left) / n < 4 ? 1.05 : 0.7)));
    panels = entries.map((entry) => {
      const method = data.methods[methodOf(entry)];
      let d = "", marks = "";
      for (let i = 0; i < n; i += 1) {
        const from = Math.min(0, lows(entry)[i]), to = Math.max(0, highs(entry)[i]);
        if (from !== to) d += `M${middle(i).toFixed(1)},${Y(from).toFixed(1)}V${Y(to).toFixed(1)}`;
        if (truth && !error) for (const v of new Set([truth.low[i], truth.high[i]])) if (v !== 0) marks += `M${X(edges[i]).toFixed(1)},${Y(v).toFixed(1)}H${X(edges[i + 1]).toFixed(1)}`;
      }
      const cross = svg("line", { class: "crossline", y1: top, y2: bottom, visibility: "hidden" });
      const readout = html("span", { class: "readout" });
      const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
        svg("g", { class: "ticks" }, ticks.map((v) => svg("text", { x: left - 8, y: Y(v), dy: "0.35em", "text-anchor": "end" }, shortText(v)))),
        svg("line", { class: "axis", x1: left, x2: right, y1: Y(0), y2: Y(0) }),
        svg("path", { class: `stem m${method.colour}`, d, "stroke-width": thick }), svg("path", { class: "truthmark", d: marks }), cross);
      const node = html("figure", { "data-method": entry.name }, html("figcaption", {}, swatch({ ...method, dash: "" }),
        html("span", { class: "name" }, entry.name), readout), drawing);
      return { entry, node, cross, readout };
    });
    const scale = html("div", { class: "indices", "aria-hidden": "true" }, html("span", {}, "0"), html("span", {}, "index"), html("span", {}, whole(size - 1)));
    stems.replaceChildren(...panels.map((p) => p.node), panels.length ? scale : html("p", {}, "All methods are switched off."));
    stems.place = { X, left, right, width };
    move(at);
  }
  const shortText = (v) => signed(String(Number(v.toPrecision(2))).replace("e+", "e"));
  const told = (entry, i) => mode === "error" ? `error ${between(entry.error_low[i], entry.error_high[i])}`
    : between(entry.low[i], entry.high[i]) + (truth ? ` (truth ${between(truth.low[i], truth.high[i])})` : "");

  function move(to) {
    at = to;
    stems.setAttribute("aria-valuenow", to === null ? 0 : to);
    stems.setAttribute("aria-valuetext", to === null ? "no coefficient chosen"
      : `Coefficient ${span(to)}: ${panels.map((p) => `${p.entry.name} ${told(p.entry, to)}`).join(", ")}`);
    for (const { entry, cross, readout } of panels) {
      cross.setAttribute("visibility", to === null ? "hidden" : "visible");
      readout.textContent = to === null ? "" : `[${span(to)}]  ${told(entry, to)}`;
      if (to === null) continue;
      const x = stems.place.X((edges[to] + edges[to + 1]) / 2);
      cross.setAttribute("x1", x);
      cross.setAttribute("x2", x);
    }
  }
  function point(event) {
    if (!panels.length) return;
    const box = panels[0].cross.ownerSVGElement.getBoundingClientRect(), { left, right, width } = stems.place;
    const index = ((((event.clientX - box.left) / box.width) * width - left) / (right - left)) * size;
    if (index < 0 || index > size) { move(null); return; }
    move(Math.max(0, Math.min(n - 1, edges.findIndex((edge) => edge > index) - 1)));
  }
  function key(event) {
    const now = at === null ? -1 : at, page = Math.max(1, Math.round(n / 10));
    const to = { ArrowRight: now + 1, ArrowUp: now + 1, ArrowLeft: now - 1, ArrowDown: now - 1, PageUp: now + page, PageDown: now - page,
      Home: 0, End: n - 1, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to === null ? null : Math.max(0, Math.min(n - 1, to)));
  }

  const modes = truth ? choice("Show", [{ value: "estimate", text: "Estimate" }, { value: "error", text: "Error" }], mode,
    (value) => { mode = value; drawStems(); }) : null;
  const heading = html("h3");
  host.append(html("h3", {}, "Which coefficients are not zero"), pattern,
    html("div", { class: "over" }, heading,
      html("div", { class: "controls" }, modes)), stems);
  document.getElementById("estimate-values").append(values);
  new ResizeObserver(() => { if (stems.place && stems.clientWidth !== stems.place.width) drawStems(); }).observe(stems);
  return () => { drawPattern(); drawStems(); values.refresh(); };
}
